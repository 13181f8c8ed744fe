package network_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/activities/network"
	"burrow.dev/burrow/manifest"
)

// guest is a namespace in the place of a guest, its device as libvirt would have made it.
type guest struct {
	server activities.Server
	ports  []manifest.Port
	ns     string
}

func (g *guest) port() manifest.Port { return g.ports[0] }

// newGuest makes a server's port on a network, and the device behind it: eth0 in a
// namespace of the guest's own, with the port's MAC and addresses.
func (s *site) newGuest(t testing.TB, name string, net manifest.Record, change func(*manifest.Port)) *guest {
	t.Helper()
	uid := uuid.NewString()
	sum := sha256.Sum256([]byte(uid))
	hexed := hex.EncodeToString(sum[:])
	p := manifest.Port{
		Name: net.Metadata.Name + "-0", Network: net.Metadata.Name, NetworkUID: net.Metadata.UID,
		MAC:    fmt.Sprintf("52:54:00:%s:%s:%s", hexed[0:2], hexed[2:4], hexed[4:6]),
		Device: "bw" + hexed[:10], Bridge: net.Status.Network.Bridge, MTU: 1500, Security: true,
		Addresses: []string{"172.16.90.2/24"}, Gateways: []string{"172.16.90.1"},
	}
	if change != nil {
		change(&p)
	}
	g := &guest{server: activities.Server{Name: name, UID: uid}, ports: []manifest.Port{p}, ns: "g-" + hexed[:8]}
	sh(t, "ip netns add "+g.ns)
	t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", g.ns).Run() })
	g.plug(t)
	g.configure(t)
	return g
}

// plug makes the guest's device on the host.
func (g *guest) plug(t testing.TB) {
	t.Helper()
	p := g.port()
	sh(t, fmt.Sprintf(`ip link add %[1]s type veth peer name eth0 netns %[2]s
		ip link set %[1]s up
		ip -n %[2]s link set eth0 address %[3]s
		ip netns exec %[2]s ethtool -K eth0 tx off >/dev/null
		ip -n %[2]s link set lo up
		ip -n %[2]s link set eth0 up`, p.Device, g.ns, p.MAC))
}

func (g *guest) configure(t testing.TB) {
	t.Helper()
	for _, a := range g.port().Addresses {
		nodad := ""
		if strings.Contains(a, ":") {
			nodad = "nodad"
		}
		sh(t, "ip -n "+g.ns+" addr add "+a+" dev eth0 "+nodad)
	}
	for _, gw := range g.port().Gateways {
		sh(t, "ip -n "+g.ns+" route add default via "+gw)
	}
}

// attach puts the device on its bridge as libvirt does: with its own marks.
func (g *guest) attach(t testing.TB) {
	t.Helper()
	p := g.port()
	sh(t, fmt.Sprintf("ovs-vsctl --timeout=10 add-port %s %s -- set Interface %s external_ids:attached-mac='\"%s\"'", p.Bridge, p.Device, p.Device, p.MAC))
}

// provision does for a guest what the workflow does for a server.
func (s *site) provision(t testing.TB, g *guest) {
	t.Helper()
	_, err := s.Ensure(t.Context(), network.EnsureIn{Server: g.server, Ports: g.ports})
	require.NoError(t, err)
	g.attach(t)
	_, err = s.Wire(t.Context(), network.WireIn{Server: g.server, Ports: g.ports})
	require.NoError(t, err)
}

// record writes the server's record as the workflow's end does.
func (s *site) record(g *guest, phase manifest.Phase) {
	rec := manifest.Record{Kind: manifest.KindServer}
	rec.Metadata.Name, rec.Metadata.UID = g.server.Name, g.server.UID
	rec.Status = manifest.Status{Phase: phase, Host: host, Ports: g.ports}
	s.records.put(rec)
}

// in runs fn on a thread in a namespace ("" is the host's own).
func in(t testing.TB, ns string, fn func() error) {
	t.Helper()
	if ns == "" {
		require.NoError(t, fn())
		return
	}
	file, err := os.Open("/run/netns/" + ns)
	require.NoError(t, err)
	defer file.Close()
	result := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends here
		if err := unix.Setns(int(file.Fd()), unix.CLONE_NEWNET); err != nil {
			result <- err
			return
		}
		result <- fn()
	}()
	require.NoError(t, <-result)
}

// serve answers every TCP connection in a namespace with the client's address, until the
// test ends.
func serve(t testing.TB, ns, address string) {
	t.Helper()
	var l net.Listener
	in(t, ns, func() (err error) {
		l, err = net.Listen("tcp", address)
		return err
	})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			fmt.Fprintf(conn, "%s", conn.RemoteAddr().(*net.TCPAddr).IP)
			conn.Close()
		}
	}()
	t.Cleanup(func() {
		l.Close()
		<-done
	})
}

// fetch connects from a namespace and reads what the server says.
func fetch(t testing.TB, ns, address string, timeout time.Duration) (string, error) {
	t.Helper()
	var said []byte
	var failed error
	in(t, ns, func() error {
		ctx, cancel := context.WithTimeout(t.Context(), timeout)
		defer cancel()
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
		if err != nil {
			failed = err
			return nil
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(timeout))
		said = make([]byte, 64)
		n, err := conn.Read(said)
		said, failed = said[:n], err
		return nil
	})
	return string(said), failed
}

// reaches asserts that a guest gets an answer, and gives it.
func (g *guest) reaches(t testing.TB, address string) string {
	t.Helper()
	said, err := fetch(t, g.ns, address, patience)
	require.NoError(t, err, "%s → %s", g.server.Name, address)
	return said
}

// doesNotReach asserts that a guest gets nothing.
func (g *guest) doesNotReach(t testing.TB, address string) {
	t.Helper()
	_, err := fetch(t, g.ns, address, quiet)
	require.Error(t, err, "%s → %s", g.server.Name, address)
}

// lookup asks a network's DNS from a guest.
func (g *guest) lookup(t testing.TB, name string) ([]string, error) {
	t.Helper()
	var found []string
	var failed error
	in(t, g.ns, func() error {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		found, failed = resolver(t, g).LookupHost(ctx, name)
		return nil
	})
	return found, failed
}

// resolver asks the guest's gateway only. Its sockets are opened in the guest.
func resolver(t testing.TB, g *guest) *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (conn net.Conn, err error) {
		in(t, g.ns, func() error {
			conn, err = new(net.Dialer).DialContext(ctx, network, net.JoinHostPort(g.port().Gateways[0], "53"))
			return nil
		})
		return conn, err
	}}
}

func sh(t testing.TB, script string) string {
	t.Helper()
	var out, said bytes.Buffer
	cmd := exec.CommandContext(t.Context(), "sh", "-ec", script)
	cmd.Stdout, cmd.Stderr = &out, &said
	require.NoError(t, cmd.Run(), "%s\n%s", script, said.String())
	return strings.TrimSpace(out.String())
}
