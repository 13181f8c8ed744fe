package pki_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"burrow.dev/burrow/internal/config"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/pki"
)

func ensure(t *testing.T, dir string, now time.Time) []string {
	t.Helper()
	renewed, err := pki.Ensure(dir, pki.Options{GroupID: os.Getgid(), Now: now})
	require.NoError(t, err)
	return renewed
}

func certificate(t *testing.T, file string) *x509.Certificate {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	block, _ := pem.Decode(text)
	require.NotNil(t, block)
	parsed, err := x509.ParseCertificate(block.Bytes)
	require.NoError(t, err)
	return parsed
}

// handshake connects a client to a server that asks for a certificate.
func handshake(t *testing.T, serverFiles, clientFiles *config.TLS) error {
	t.Helper()
	server, err := serverFiles.Server()
	require.NoError(t, err)
	client, err := clientFiles.Client()
	require.NoError(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	accepted := make(chan error, 1)
	go func() {
		conn, err := listener.Accept()
		if err == nil {
			defer conn.Close()
			err = tls.Server(conn, server).HandshakeContext(t.Context())
		}
		accepted <- err
	}()
	conn, err := net.Dial("tcp", listener.Addr().String())
	require.NoError(t, err)
	defer conn.Close()
	clientErr := tls.Client(conn, client).HandshakeContext(t.Context())
	return errors.Join(<-accepted, clientErr) // in TLS 1.3 the client is done before the server has judged it
}

func TestCertificatesLetClientsAndServersMeet(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "tls")
	require.ElementsMatch(t, []string{"server", "worker", "client"}, ensure(t, dir, time.Time{}))
	for _, role := range []string{"worker", "client"} {
		require.NoError(t, handshake(t, pki.Files(dir, "server"), pki.Files(dir, role)), role)
	}
	require.Equal(t, pki.WorkerCommonName, certificate(t, filepath.Join(dir, "worker.pem")).Subject.CommonName)
}

func TestAStrangersCertificateIsRefused(t *testing.T) {
	ours, theirs := filepath.Join(t.TempDir(), "tls"), filepath.Join(t.TempDir(), "tls")
	ensure(t, ours, time.Time{})
	ensure(t, theirs, time.Time{})
	stranger := pki.Files(theirs, "client")
	stranger.CA = filepath.Join(ours, "ca.pem")
	require.Error(t, handshake(t, pki.Files(ours, "server"), stranger))
}

func TestKeysAreReadableByThoseMeantOnly(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "tls")
	ensure(t, dir, time.Time{})
	for file, want := range map[string]fs.FileMode{
		"ca-key.pem": 0o600, "server-key.pem": 0o600, "worker-key.pem": 0o600, "client-key.pem": 0o640, "ca.pem": 0o644,
	} {
		info, err := os.Stat(filepath.Join(dir, file))
		require.NoError(t, err)
		require.Equal(t, want, info.Mode().Perm(), file)
	}
}

func TestEnsureAgainChangesNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "tls")
	ensure(t, dir, time.Time{})
	before := certificate(t, filepath.Join(dir, "server.pem")).SerialNumber
	require.Empty(t, ensure(t, dir, time.Time{}))
	require.Equal(t, before, certificate(t, filepath.Join(dir, "server.pem")).SerialNumber)
}

func TestCertificatesAreRenewedInTheLastThirdWithTheirKeys(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "tls")
	now := time.Now().AddDate(-1, -6, 0)
	ensure(t, dir, now)
	key, err := os.ReadFile(filepath.Join(dir, "server-key.pem"))
	require.NoError(t, err)

	require.Empty(t, ensure(t, dir, now.AddDate(1, 0, 0)))
	require.Len(t, ensure(t, dir, now.AddDate(1, 6, 0)), 3)

	same, err := os.ReadFile(filepath.Join(dir, "server-key.pem"))
	require.NoError(t, err)
	require.Equal(t, key, same)
	require.NoError(t, handshake(t, pki.Files(dir, "server"), pki.Files(dir, "client")))
}

func TestARenewedAuthorityStillVouchesForOlderCertificates(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "tls")
	now := time.Now()
	ensure(t, dir, now)
	late := now.AddDate(13, 1, 0) // the authority's last third begins at 13 years and 4 months
	ensure(t, dir, late)
	first, old := certificate(t, filepath.Join(dir, "ca.pem")), certificate(t, filepath.Join(dir, "client.pem"))

	later := now.AddDate(13, 6, 0)
	require.Empty(t, ensure(t, dir, later), "the leaves are still good")

	renewed := certificate(t, filepath.Join(dir, "ca.pem"))
	require.NotEqual(t, first.SerialNumber, renewed.SerialNumber)
	pool := x509.NewCertPool()
	pool.AddCert(renewed)
	_, err := old.Verify(x509.VerifyOptions{Roots: pool, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, CurrentTime: later})
	require.NoError(t, err)
}

func TestADamagedLeafIsReplaced(t *testing.T) {
	for _, file := range []string{"server.pem", "server-key.pem"} {
		dir := filepath.Join(t.TempDir(), "tls")
		ensure(t, dir, time.Time{})
		require.NoError(t, os.WriteFile(filepath.Join(dir, file), []byte("torn"), 0o600))
		require.Equal(t, []string{"server"}, ensure(t, dir, time.Time{}), file)
		require.NoError(t, handshake(t, pki.Files(dir, "server"), pki.Files(dir, "client")))
	}
}

func TestALostAuthorityKeyIsNotReplacedSilently(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "tls")
	ensure(t, dir, time.Time{})
	require.NoError(t, os.Remove(filepath.Join(dir, "ca-key.pem")))
	_, err := pki.Ensure(dir, pki.Options{GroupID: -1})
	require.ErrorContains(t, err, "restore ca-key.pem from a backup")
	require.Equal(t, errs.Operator, errs.ClassOf(err))
}

func TestMasterKeyIsMadeOnceAndNeverReplaced(t *testing.T) {
	file := filepath.Join(t.TempDir(), "master.key")
	require.NoError(t, pki.EnsureMasterKey(file))
	first, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Len(t, first, 32)
	require.NoError(t, pki.EnsureMasterKey(file))
	again, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, first, again)

	require.NoError(t, os.Chmod(file, 0o640))
	require.ErrorContains(t, pki.EnsureMasterKey(file), "chmod 600")
	require.NoError(t, os.WriteFile(file, []byte("short"), 0o600))
	require.NoError(t, os.Chmod(file, 0o600))
	require.ErrorContains(t, pki.EnsureMasterKey(file), "want 32")
}
