package gateway

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"burrow.dev/burrow/internal/config"
	"burrow.dev/burrow/internal/errs"
)

func socketDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "gw")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func TestTheSocketIsOpenToTheGroupAndToNobodyElse(t *testing.T) {
	cfg := serve(t, deps(t, &store{}))
	info, err := os.Stat(cfg.Socket)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o660)|os.ModeSocket, info.Mode())
	if group, err := user.LookupGroup(config.Group); err == nil {
		require.Equal(t, group.Gid, itoa(info.Sys().(*syscall.Stat_t).Gid))
	}
	entries, err := os.ReadDir(filepath.Dir(cfg.Socket))
	require.NoError(t, err)
	require.Len(t, entries, 1, "the folder where it was made is gone")
}

func itoa(n uint32) string { return big.NewInt(int64(n)).String() }

func TestASocketThatAKilledWorkerLeftIsReplaced(t *testing.T) {
	cfg := config.Gateway{Socket: filepath.Join(socketDir(t), "s")}
	left, err := net.ListenUnix("unix", &net.UnixAddr{Name: cfg.Socket, Net: "unix"})
	require.NoError(t, err)
	left.SetUnlinkOnClose(false)
	require.NoError(t, left.Close())

	stop := start(t, deps(t, &store{}), cfg)
	stop()
	_, err = os.Lstat(cfg.Socket)
	require.ErrorIs(t, err, os.ErrNotExist, "an orderly end removes it")
}

func TestASecondWorkerOnTheSameSocketIsRefused(t *testing.T) {
	cfg := serve(t, deps(t, &store{}))
	err := NewServer(deps(t, &store{})).Serve(t.Context(), cfg)
	require.ErrorIs(t, err, errs.ErrBusy)
	connect(t, cfg) // the first one still answers
}

func TestAnAddressWithoutTLSIsRefused(t *testing.T) {
	cfg := config.Gateway{Address: "127.0.0.1:0"}
	require.ErrorIs(t, NewServer(deps(t, &store{})).Serve(t.Context(), cfg), errs.ErrInvalid)
	_, err := Dial(t.Context(), cfg)
	require.ErrorIs(t, err, errs.ErrInvalid)
}

func TestOverTCPBothSidesShowACertificateOfTheCA(t *testing.T) {
	dir := t.TempDir()
	ours, theirs := newCA(t), newCA(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := l.Addr().String()
	require.NoError(t, l.Close())

	worker := config.Gateway{Address: address, TLS: ours.issue(t, dir, "worker")}
	client := config.Gateway{Address: address, TLS: ours.issue(t, dir, "client")}
	d := deps(t, &store{})
	ctx := t.Context()
	done := make(chan error, 1)
	stopped := make(chan struct{})
	t.Cleanup(func() { <-stopped })
	go func() { defer close(stopped); done <- NewServer(d).Serve(ctx, worker) }()
	require.Eventually(t, func() bool {
		c, err := Dial(ctx, client)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	}, soon, 5*time.Millisecond)

	stranger := client
	stranger.TLS = theirs.issue(t, dir, "stranger")
	stranger.TLS.CA = client.TLS.CA
	_, err = Dial(ctx, stranger)
	require.ErrorIs(t, err, errs.ErrUnavailable, "a client of another CA")

	deceived := client
	deceived.TLS = ours.issue(t, dir, "deceived")
	deceived.TLS.CA = theirs.file(t, dir)
	_, err = Dial(ctx, deceived)
	require.ErrorIs(t, err, errs.ErrUnavailable, "a server of another CA")
	require.ErrorContains(t, err, "the TLS handshake failed: ")
}

// ca is a certificate authority of a test.
type ca struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newCA(t *testing.T) ca {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test CA"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	cert, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	return ca{cert, key}
}

func (a ca) file(t *testing.T, dir string) string {
	t.Helper()
	f, err := os.CreateTemp(dir, "ca-*.pem")
	require.NoError(t, err)
	require.NoError(t, pem.Encode(f, &pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw}))
	require.NoError(t, f.Close())
	return f.Name()
}

func (a ca) issue(t *testing.T, dir, name string) *config.TLS {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	require.NoError(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	files := &config.TLS{CA: a.file(t, dir), Cert: filepath.Join(dir, name+".pem"), Key: filepath.Join(dir, name+".key")}
	require.NoError(t, os.WriteFile(files.Cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	require.NoError(t, os.WriteFile(files.Key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600))
	return files
}
