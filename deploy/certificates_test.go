package deploy_test

import (
	"crypto/tls"
	"errors"
	"net"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"burrow.dev/burrow/internal/config"
)

func makeCertificates(t *testing.T, dir string, names ...string) {
	t.Helper()
	if _, err := exec.LookPath("openssl"); err != nil {
		t.Skip("openssl is not installed here")
	}
	output, err := exec.Command("./make-certificates.sh", append([]string{dir}, names...)...).CombinedOutput()
	require.NoError(t, err, string(output))
}

func files(dir, role, server string) *config.TLS {
	return &config.TLS{
		CA: filepath.Join(dir, "ca.pem"), Cert: filepath.Join(dir, role+".pem"),
		Key: filepath.Join(dir, role+"-key.pem"), ServerName: server,
	}
}

func meet(t *testing.T, server, client *config.TLS) error {
	t.Helper()
	serving, err := server.Server()
	require.NoError(t, err)
	listener, err := tls.Listen("tcp", "127.0.0.1:0", serving)
	require.NoError(t, err)
	defer listener.Close()
	accepted := make(chan error, 1)
	go func() {
		conn, err := listener.Accept()
		if err == nil {
			defer conn.Close()
			err = conn.(*tls.Conn).HandshakeContext(t.Context())
		}
		accepted <- err
	}()
	dialling, err := client.Client()
	require.NoError(t, err)
	conn, err := net.Dial("tcp", listener.Addr().String())
	require.NoError(t, err)
	defer conn.Close()
	mine := tls.Client(conn, dialling).HandshakeContext(t.Context())
	return errors.Join(<-accepted, mine)
}

func TestCertificatesServeTheNamesTheyWereMadeFor(t *testing.T) {
	dir := t.TempDir()
	makeCertificates(t, dir, "kvm1.example.org", "192.0.2.7", "2001:db8::7")
	for _, name := range []string{"localhost", "kvm1.example.org", "192.0.2.7", "2001:db8::7"} {
		require.NoError(t, meet(t, files(dir, "server", name), files(dir, "worker", name)), name)
	}
	require.Error(t, meet(t, files(dir, "server", "x"), files(dir, "worker", "kvm2.example.org")))

	worker := files(dir, "worker", "localhost")
	shown, err := tls.LoadX509KeyPair(worker.Cert, worker.Key)
	require.NoError(t, err)
	require.NoError(t, shown.Leaf.VerifyHostname("burrow-worker"), "etcd admits workers by this name")
	shown, err = tls.LoadX509KeyPair(filepath.Join(dir, "client.pem"), filepath.Join(dir, "client-key.pem"))
	require.NoError(t, err)
	require.Error(t, shown.Leaf.VerifyHostname("burrow-worker"))
	makeCertificates(t, dir, "kvm2.example.org")
	require.NoError(t, meet(t, files(dir, "server", "x"), worker), "the authority stays")
	require.NoError(t, meet(t, files(dir, "server", "x"), files(dir, "client", "kvm2.example.org")))
}
