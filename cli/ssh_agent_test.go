package cli

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"burrow.dev/burrow/internal/gateway"
	"burrow.dev/burrow/manifest"
)

// managementKey is the key of every server.
type managementKey struct{ ssh.Signer }

func (k managementKey) Management(context.Context, string) (ssh.Signer, error) { return k.Signer, nil }

func TestSSHIsOfferedTheManagementKeyThenTheUsersOwn(t *testing.T) {
	dir, err := os.MkdirTemp("", "cli")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })

	// the user's own agent, with one key
	_, own, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	ring := agent.NewKeyring()
	require.NoError(t, ring.Add(agent.AddedKey{PrivateKey: own, Comment: "mine"}))
	l, err := net.Listen("unix", filepath.Join(dir, "own"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() { _ = agent.ServeAgent(ring, conn) }()
		}
	}()

	w := newWorld(t)
	w.put("db", manifest.PhaseRunning)
	_, private, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	signer, err := ssh.NewSignerFromKey(private)
	require.NoError(t, err)
	w.deps.Keys = managementKey{signer}
	w.start()
	gw, err := gateway.Dial(t.Context(), w.socket)
	require.NoError(t, err)
	t.Cleanup(func() { _ = gw.Close() })

	for name, c := range map[string]struct {
		socket string
		keys   []string
	}{
		"with an agent":      {filepath.Join(dir, "own"), []string{"burrow server/db", "mine"}},
		"without one":        {"", []string{"burrow server/db"}},
		"with one that died": {filepath.Join(dir, "gone"), []string{"burrow server/db"}},
	} {
		t.Run(name, func(t *testing.T) {
			socket := filepath.Join(dir, "agent")
			bridge, err := serveAgent(t.Context(), gw, "db", socket, c.socket)
			require.NoError(t, err)
			defer bridge.close()
			conn, err := net.Dial("unix", socket)
			require.NoError(t, err)
			client := agent.NewClient(conn)
			keys, err := client.List()
			require.NoError(t, err)
			var comments []string
			for _, k := range keys {
				comments = append(comments, k.Comment)
				signature, err := client.Sign(k, []byte("data"))
				require.NoError(t, err)
				require.NoError(t, k.Verify([]byte("data"), signature))
			}
			require.Equal(t, c.keys, comments)
			require.Error(t, client.RemoveAll())
			_, err = client.Sign(w.deps.Keys.(managementKey).PublicKey(), []byte("data"))
			require.NoError(t, err)
		})
	}
	left, err := ring.List()
	require.NoError(t, err)
	require.Len(t, left, 1, "the user's agent is as it was")
}
