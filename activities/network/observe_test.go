package network_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// echoes tells whether an address answers a ping from a namespace.
func echoes(t testing.TB, ns, to string) bool {
	t.Helper()
	answered := false
	in(t, ns, func() error {
		conn, err := net.Dial("ip4:icmp", to)
		if err != nil {
			return err
		}
		defer conn.Close()
		ping := []byte{8, 0, 0, 0, 1, 2, 3, 4}
		binary.BigEndian.PutUint16(ping[2:], checksum(ping))
		buf := make([]byte, 128)
		for deadline := time.Now().Add(patience); time.Now().Before(deadline) && !answered; {
			if _, err := conn.Write(ping); err != nil {
				return err
			}
			_ = conn.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
			n, _, err := conn.(*net.IPConn).ReadFrom(buf) // without the IP header
			answered = err == nil && n >= 8 && buf[0] == 0
		}
		return nil
	})
	return answered
}

func reverse(t testing.TB, g *guest, address string) (names []string, err error) {
	t.Helper()
	in(t, g.ns, func() error {
		names, err = resolver(t, g).LookupAddr(t.Context(), address)
		return nil
	})
	return names, err
}

// answer says text to whoever connects, until the test ends.
func answer(t testing.TB, ns, address, text string) {
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
			_, _ = io.WriteString(conn, text)
			conn.Close()
		}
	}()
	t.Cleanup(func() {
		l.Close()
		<-done
	})
}

func readAll(t testing.TB, conn net.Conn) string {
	t.Helper()
	defer conn.Close()
	require.NoError(t, conn.SetDeadline(time.Now().Add(patience)))
	b, err := io.ReadAll(conn)
	require.NoError(t, err)
	return string(b)
}

// addressOf gives the IPv4 address of a device.
func addressOf(t testing.TB, ns, device string) string {
	t.Helper()
	var found string
	in(t, ns, func() error {
		dev, err := net.InterfaceByName(device)
		if err != nil {
			return err
		}
		addresses, err := dev.Addrs()
		for _, a := range addresses {
			if ip := a.(*net.IPNet).IP.To4(); ip != nil {
				found = ip.String()
			}
		}
		return err
	})
	require.NotEmpty(t, found)
	return found
}

// startResolver answers *.outside.example at an address of a namespace ("" is the host's own).
func startResolver(t testing.TB, ns, address string) {
	t.Helper()
	args := []string{
		"dnsmasq", "--keep-in-foreground", "--conf-file=/dev/null", "--no-resolv", "--no-hosts", "--pid-file=", "--bind-interfaces",
		"--listen-address=" + address, "--address=/outside.example/203.0.113.80", "--address=/db-net/203.0.113.66",
	}
	if ns != "" {
		args = append([]string{"ip", "netns", "exec", ns}, args...)
	}
	cmd := exec.Command(args[0], args[1:]...)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	eventually(t, func() bool {
		listening := false
		in(t, ns, func() error {
			conn, err := net.DialTimeout("tcp", address+":53", quiet)
			if listening = err == nil; listening {
				conn.Close()
			}
			return nil
		})
		return listening
	})
}

// sendRate measures how many Mbit/s one guest gets through to another, over TCP.
func sendRate(t testing.TB, from, to *guest) float64 {
	t.Helper()
	address := net.JoinHostPort(strings.Split(to.port().Addresses[0], "/")[0], "5001")
	var l net.Listener
	in(t, to.ns, func() (err error) {
		l, err = net.Listen("tcp", address)
		return err
	})
	defer l.Close()
	received := make(chan float64, 1)
	go func() {
		conn, err := l.Accept()
		if err != nil {
			received <- -1
			return
		}
		defer conn.Close()
		start := time.Now()
		n, _ := io.Copy(io.Discard, conn)
		received <- float64(n) * 8 / 1e6 / time.Since(start).Seconds()
	}()
	in(t, from.ns, func() error {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
		if err != nil {
			return err
		}
		defer conn.Close()
		block := make([]byte, 64<<10)
		for deadline := time.Now().Add(1500 * time.Millisecond); time.Now().Before(deadline); {
			_ = conn.SetWriteDeadline(time.Now().Add(time.Second))
			if _, err := conn.Write(block); err != nil {
				break
			}
		}
		return nil
	})
	return <-received
}

// inventory lists what this package could leave on a host.
func inventory(t testing.TB) []string {
	t.Helper()
	var all []string
	devices, err := net.Interfaces()
	require.NoError(t, err)
	for _, d := range devices {
		if d.Name != "ovs-netdev" { // Open vSwitch's own, with the first userspace bridge
			all = append(all, "device "+d.Name)
		}
	}
	for kind, script := range map[string]string{
		"bridge": "ovs-vsctl --timeout=5 list-br", "port": "ovs-vsctl --timeout=5 --bare --columns=name list Interface",
		"namespace": "ls /run/netns", "rule": "nft list ruleset", "address": "ip -o -4 addr", "route": "ip route",
		"state": "find /run/burrow -mindepth 2 2>/dev/null || true",
	} {
		for _, line := range strings.Split(sh(t, script), "\n") {
			if line != "" {
				all = append(all, kind+" "+line)
			}
		}
	}
	for _, pid := range processes("dnsmasq") {
		all = append(all, fmt.Sprintf("process dnsmasq %d", pid))
	}
	sort.Strings(all)
	return all
}

// processes lists the living processes of a name.
func processes(name string) []int {
	paths, _ := filepath.Glob("/proc/[0-9]*/comm")
	var found []int
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil || strings.TrimSpace(string(text)) != name {
			continue
		}
		dir := filepath.Dir(path)
		if line, err := os.ReadFile(dir + "/cmdline"); err != nil || len(line) == 0 {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(dir)); err == nil {
			found = append(found, pid)
		}
	}
	return found
}

func itoa(n int) string { return strconv.Itoa(n) }

// parsePrefix gives the address of "address/bits".
func parsePrefix(text string) (string, error) {
	ip, _, err := net.ParseCIDR(text)
	return ip.String(), err
}

// chatter sends a frame from a guest again and again until stop is called.
func chatter(t testing.TB, g *guest, frame []byte) (stop func()) {
	t.Helper()
	fd := link(t, g.ns, "eth0")
	end, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-end:
				return
			case <-tick.C:
				_, _ = unix.Write(fd, frame)
			}
		}
	}()
	return func() {
		close(end)
		<-done
	}
}

// receive listens for a datagram on the host itself.
func receive(t testing.TB, address string) (heard func(time.Duration) string) {
	t.Helper()
	conn, err := net.ListenPacket("udp4", address)
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	return func(wait time.Duration) string {
		buf := make([]byte, 64)
		require.NoError(t, conn.SetReadDeadline(time.Now().Add(wait)))
		n, _, err := conn.ReadFrom(buf)
		if err != nil {
			return ""
		}
		return string(buf[:n])
	}
}
