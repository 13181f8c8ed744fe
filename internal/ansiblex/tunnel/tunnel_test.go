package tunnel

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"io"
	"net"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start serves a socket until the test ends.
func start(t *testing.T, serve func(context.Context, net.Listener) error) (path string, stop func()) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	var g sync.WaitGroup
	g.Go(func() { require.NoError(t, serve(ctx, l)) })
	stop = func() { cancel(); g.Wait() }
	t.Cleanup(stop)
	return path, stop
}

// echo is a server that answers when the client has finished speaking.
func echo(t *testing.T) func(context.Context, string) (net.Conn, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var g sync.WaitGroup
	g.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			g.Go(func() {
				defer c.Close()
				data, _ := io.ReadAll(c)
				_, _ = c.Write(append([]byte("echo "), data...))
			})
		}
	})
	t.Cleanup(func() { _ = l.Close(); g.Wait() })
	return func(ctx context.Context, name string) (net.Conn, error) {
		if name != "db" {
			return nil, errors.New("not of this run")
		}
		return (&net.Dialer{}).DialContext(ctx, "tcp", l.Addr().String())
	}
}

func TestBytesGoBothWaysAndTheEndIsPassedOn(t *testing.T) {
	path, _ := start(t, (&Server{Dial: echo(t)}).Serve)
	conn, err := net.Dial("unix", path)
	require.NoError(t, err)
	defer conn.Close()
	_, err = conn.Write([]byte("db\nhello"))
	require.NoError(t, err)
	require.NoError(t, conn.(*net.UnixConn).CloseWrite())
	got, err := io.ReadAll(conn)
	require.NoError(t, err)
	require.Equal(t, "echo hello", string(got))
}

func TestOnlyTheRunsServersAreReached(t *testing.T) {
	failed := make(chan string, 1)
	path, _ := start(t, (&Server{Dial: echo(t), Failed: func(name string, _ error) { failed <- name }}).Serve)
	conn, err := net.Dial("unix", path)
	require.NoError(t, err)
	defer conn.Close()
	_, err = conn.Write([]byte("other\n"))
	require.NoError(t, err)
	got, _ := io.ReadAll(conn)
	require.Empty(t, got)
	require.Equal(t, "other", <-failed)
}

func TestANameWithoutEndIsCutOff(t *testing.T) {
	path, _ := start(t, (&Server{Dial: echo(t)}).Serve)
	conn, err := net.Dial("unix", path)
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, conn.SetDeadline(time.Now().Add(5*time.Second)))
	_, _ = conn.Write(make([]byte, 4*maxName))
	got, _ := io.ReadAll(conn)
	require.Empty(t, got)
}

func TestStoppingEndsOpenConnections(t *testing.T) {
	path, stop := start(t, (&Server{Dial: echo(t)}).Serve)
	conn, err := net.Dial("unix", path)
	require.NoError(t, err)
	defer conn.Close()
	_, err = conn.Write([]byte("db\nhello"))
	require.NoError(t, err)
	stop()
	_, err = io.ReadAll(conn)
	_ = err // the end, in one way or the other
}

func TestTheAgentSignsAndNothingElse(t *testing.T) {
	_, priv, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	signer, err := ssh.NewSignerFromKey(priv)
	require.NoError(t, err)
	path, _ := start(t, func(ctx context.Context, l net.Listener) error { return ServeAgent(ctx, l, []ssh.Signer{signer}) })
	conn, err := net.Dial("unix", path)
	require.NoError(t, err)
	defer conn.Close()
	client := agent.NewClient(conn)
	keys, err := client.List()
	require.NoError(t, err)
	require.Len(t, keys, 1)
	sig, err := client.Sign(signer.PublicKey(), []byte("data"))
	require.NoError(t, err)
	require.NoError(t, signer.PublicKey().Verify([]byte("data"), sig))
	require.Error(t, client.RemoveAll())
	require.Error(t, client.Add(agent.AddedKey{PrivateKey: priv}))
	require.Error(t, client.Lock([]byte("x")))
	other, err := ssh.NewPublicKey(ed25519.PublicKey(make([]byte, 32)))
	require.NoError(t, err)
	_, err = client.Sign(other, []byte("data"))
	require.Error(t, err)
}
