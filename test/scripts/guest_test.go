package scripts

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/crypto/ssh"
)

// guest is a real SSH server on loopback that stands for every server of a script.
type guest struct {
	host, management ssh.Signer
	address          string
	waiting          marker
}

// marker is a file that tells a script how far the guest is.
type marker string

func (m marker) touch() error { return os.WriteFile(string(m), nil, 0o600) }

func startGuest(env *testscript.Env) (*guest, error) {
	g := &guest{waiting: marker(filepath.Join(env.Getenv("WORK"), "waiting"))}
	for _, key := range []*ssh.Signer{&g.host, &g.management} {
		_, private, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			return nil, err
		}
		if *key, err = ssh.NewSignerFromKey(private); err != nil {
			return nil, err
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	g.address = l.Addr().String()
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { g.serve(conn) })
		}
	})
	env.Defer(func() {
		_ = l.Close()
		serving.Wait()
	})
	return g, nil
}

func (g *guest) hostKeyLine() string {
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(g.host.PublicKey())))
}

// DialNetwork reaches the guest by its address on the network, whatever its port.
func (g *guest) DialNetwork(ctx context.Context, network, address string) (net.Conn, error) {
	if network != "db-net" || !strings.HasPrefix(address, "10.0.0.2:") {
		return nil, fmt.Errorf("%s is not on network %s", address, network)
	}
	var d net.Dialer
	return d.DialContext(ctx, "tcp", g.address)
}

// Management gives the key that the guest lets in.
func (g *guest) Management(context.Context, string) (ssh.Signer, error) { return g.management, nil }

// execute runs a command for real, in an empty environment.
func (g *guest) execute(channel ssh.Channel, command string) {
	cmd := exec.Command("/bin/sh", "-c", command)
	cmd.Dir = filepath.Dir(string(g.waiting))
	cmd.Env = []string{"PATH=/usr/bin:/bin", "HOME=" + cmd.Dir}
	cmd.Stdout, cmd.Stderr = channel, channel.Stderr()
	cmd.WaitDelay = time.Second
	if stdin, err := cmd.StdinPipe(); err == nil {
		go func() {
			_, _ = io.Copy(stdin, channel)
			_ = stdin.Close()
		}()
	}
	_ = cmd.Run()
	_, _ = channel.SendRequest("exit-status", false, ssh.Marshal(struct{ Code uint32 }{uint32(max(0, cmd.ProcessState.ExitCode()))}))
	_ = channel.Close()
}

// serve lets the management key in as "debian", and answers each command with its text,
// but for those of Ansible, which it runs.
func (g *guest) serve(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	cfg := &ssh.ServerConfig{PublicKeyCallback: func(meta ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
		if meta.User() == "debian" && string(key.Marshal()) == string(g.management.PublicKey().Marshal()) {
			return nil, nil
		}
		return nil, fmt.Errorf("%s may not log in with that key", meta.User())
	}}
	cfg.AddHostKey(g.host)
	sc, channels, requests, err := ssh.NewServerConn(conn, cfg)
	if err != nil {
		return
	}
	defer func() { _ = sc.Close() }()
	go ssh.DiscardRequests(requests)
	for offered := range channels {
		channel, requests, err := offered.Accept()
		if err != nil {
			return
		}
		for req := range requests {
			if req.Type != "exec" {
				_ = req.Reply(req.Type == "env", nil)
				continue
			}
			_ = req.Reply(true, nil)
			var command struct{ Text string }
			_ = ssh.Unmarshal(req.Payload, &command)
			if strings.HasPrefix(command.Text, "/bin/sh -c ") { // Ansible's
				g.execute(channel, command.Text)
				continue
			}
			_, _ = fmt.Fprintf(channel, "%s ran: %s\n", sc.User(), command.Text)
			if command.Text == "wait" {
				_ = g.waiting.touch()
				continue // until the client goes
			}
			status := struct{ Code uint32 }{0}
			if code, ok := strings.CutPrefix(command.Text, "exit "); ok {
				n, _ := strconv.Atoi(code)
				status.Code = uint32(n)
			}
			_, _ = channel.SendRequest("exit-status", false, ssh.Marshal(status))
			_ = channel.Close()
		}
	}
}
