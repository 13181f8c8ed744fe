package guest

import (
	"encoding/binary"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/crypto/ssh"
)

// guestSSH is a guest: a real SSH server whose answers a test changes while it runs.
type guestSSH struct {
	t        *testing.T
	mu       sync.Mutex
	hostKey  ssh.Signer
	accept   ssh.PublicKey                               // whose login is let in
	silent   bool                                        // accepts TCP and says nothing
	noShell  bool                                        // PAM: the key passes, no command runs
	command  func(text string) (output string, exit int) // what commands answer
	logins   atomic.Int32
	open     sync.WaitGroup
	listener net.Listener
}

func startGuest(t *testing.T) *guestSSH {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	before := goleak.IgnoreCurrent() // other tests' guests
	t.Cleanup(func() { goleak.VerifyNone(t, before) })
	g := &guestSSH{
		t: t, hostKey: signer(t, 'h'), accept: signer(t, 'm').PublicKey(), listener: l,
		command: func(string) (string, int) { return `{"status":"done"}`, 0 },
	}
	g.open.Go(g.serve)
	t.Cleanup(func() { _ = l.Close(); g.open.Wait() })
	return g
}

func (g *guestSSH) set(change func()) { g.mu.Lock(); defer g.mu.Unlock(); change() }

func (g *guestSSH) serve() {
	for {
		conn, err := g.listener.Accept()
		if err != nil {
			return
		}
		g.open.Go(func() { defer conn.Close(); g.handle(conn) })
	}
}

func (g *guestSSH) handle(conn net.Conn) {
	g.mu.Lock()
	silent, key, accept := g.silent, g.hostKey, g.accept
	g.mu.Unlock()
	if silent {
		_, _ = conn.Read(make([]byte, 1<<10))
		_, _ = conn.Read(make([]byte, 1<<10))
		return
	}
	cfg := &ssh.ServerConfig{PublicKeyCallback: func(_ ssh.ConnMetadata, k ssh.PublicKey) (*ssh.Permissions, error) {
		if accept == nil || string(k.Marshal()) != string(accept.Marshal()) {
			return nil, errors.New("denied")
		}
		return nil, nil
	}}
	cfg.AddHostKey(key)
	c, chans, reqs, err := ssh.NewServerConn(conn, cfg)
	if err != nil {
		return
	}
	defer c.Close()
	g.logins.Add(1)
	g.open.Go(func() { ssh.DiscardRequests(reqs) })
	for nc := range chans {
		g.session(nc)
	}
}

func (g *guestSSH) session(nc ssh.NewChannel) {
	g.mu.Lock()
	command, noShell := g.command, g.noShell
	g.mu.Unlock()
	if noShell {
		_ = nc.Reject(ssh.Prohibited, "System is booting up.")
		return
	}
	ch, reqs, err := nc.Accept()
	if err != nil {
		return
	}
	g.open.Go(func() {
		defer ch.Close()
		for r := range reqs {
			_ = r.Reply(r.Type == "exec", nil)
			if r.Type != "exec" {
				continue
			}
			out, exit := "", 0
			if text := string(r.Payload[4:]); text != ":" {
				out, exit = command(text)
			}
			_, _ = ch.Write([]byte(out))
			_, _ = ch.SendRequest("exit-status", false, binary.BigEndian.AppendUint32(nil, uint32(exit)))
			return
		}
	})
}
