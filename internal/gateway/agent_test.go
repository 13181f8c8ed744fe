package gateway

import (
	"bytes"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
)

func TestTheAgentSignsWithTheManagementKeyAndRefusesChange(t *testing.T) {
	d := deps(t, &store{records: []manifest.Record{server("db", "127.0.0.1/8"), server("other")}})
	c := connect(t, serve(t, d))
	conn, err := c.AgentConn(t.Context(), "db")
	require.NoError(t, err)
	client := agent.NewClient(conn)
	keys, err := client.List()
	require.NoError(t, err)
	require.Len(t, keys, 1)
	require.Equal(t, "burrow server/db", keys[0].Comment)

	signature, err := client.Sign(keys[0], []byte("data"))
	require.NoError(t, err)
	require.NoError(t, d.Keys.(key).signer.PublicKey().Verify([]byte("data"), signature))

	stranger := newKey(t)
	_, err = client.Sign(stranger.signer.PublicKey(), []byte("data"))
	require.Error(t, err)
	require.Error(t, client.RemoveAll())
	require.Error(t, client.Remove(keys[0]))
	require.Error(t, client.Lock([]byte("x")))
	require.NoError(t, conn.Close())

	_, err = c.AgentConn(t.Context(), "other")
	require.ErrorIs(t, err, errs.ErrNotFound)
}

func TestTheAgentLogsInOverADialledConnection(t *testing.T) {
	d := deps(t, nil)
	management := d.Keys.(key).signer
	host := newKey(t).signer
	port := listenTCP(t, func(conn *net.TCPConn) {
		cfg := &ssh.ServerConfig{PublicKeyCallback: func(_ ssh.ConnMetadata, k ssh.PublicKey) (*ssh.Permissions, error) {
			if bytes.Equal(k.Marshal(), management.PublicKey().Marshal()) {
				return nil, nil
			}
			return nil, errs.ErrNotFound
		}}
		cfg.AddHostKey(host)
		if sc, _, _, err := ssh.NewServerConn(conn, cfg); err == nil {
			_ = sc.Wait()
		}
	})
	d.Records = &store{records: []manifest.Record{server("db", "127.0.0.1/8")}}
	c := connect(t, serve(t, d))
	agentConn, err := c.AgentConn(t.Context(), "db")
	require.NoError(t, err)
	defer func() { _ = agentConn.Close() }()
	conn, err := c.DialServer(t.Context(), "db", port)
	require.NoError(t, err)
	sc, channels, requests, err := ssh.NewClientConn(conn, "db", &ssh.ClientConfig{
		User: "debian", HostKeyCallback: ssh.FixedHostKey(host.PublicKey()),
		Auth: []ssh.AuthMethod{ssh.PublicKeysCallback(agent.NewClient(agentConn).Signers)},
	})
	require.NoError(t, err)
	require.NoError(t, ssh.NewClient(sc, channels, requests).Close())
}
