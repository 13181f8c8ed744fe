package guest

import (
	"bytes"
	"crypto/ed25519"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
)

// startSSHD starts the machine's own sshd on loopback, with a key for root.
func startSSHD(t *testing.T) (addr, hostKey string) {
	t.Helper()
	require.NoError(t, os.MkdirAll("/run/sshd", 0o755))
	dir := t.TempDir()
	write := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, data, 0o600))
		return path
	}
	block, err := ssh.MarshalPrivateKey(ed25519.NewKeyFromSeed(bytes.Repeat([]byte("h"), 32)), "")
	require.NoError(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr = l.Addr().String()
	require.NoError(t, l.Close())
	_, port, _ := net.SplitHostPort(addr)
	conf := write("sshd_config", fmt.Appendf(nil,
		"ListenAddress 127.0.0.1\nPort %s\nHostKey %s\nAuthorizedKeysFile %s\nPidFile none\nUsePAM no\nStrictModes no\nPermitRootLogin prohibit-password\n",
		port, write("host", pem.EncodeToMemory(block)), write("keys", []byte(line(signer(t, 'm'))))))
	cmd := exec.Command("/usr/sbin/sshd", "-D", "-f", conf)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return addr, line(signer(t, 'h'))
}

// TestARealSSHDaemonLetsUsIn also meets a guest without cloud-init: this machine.
func TestARealSSHDaemonLetsUsIn(t *testing.T) {
	addr, hostKey := startSSHD(t)
	in := WaitReadyIn{
		Server: activities.Server{Name: "db", UID: "u"}, Login: "root", HostKeys: []string{hostKey}, Readiness: manifest.ReadinessSSH,
		Ports: []manifest.Port{{Network: "n", Addresses: []string{"fd00::2/64"}}},
	}
	a := New(Options{Dialer: dialer{"n [fd00::2]:22": addr}, Keys: keyring{signer(t, 'm')}, HostKeyPatience: time.Second})
	out, err := a.WaitReady(bounded10s(t), in)
	require.NoError(t, err)
	require.Equal(t, "fd00::2", out.Address)

	if _, err := exec.LookPath("cloud-init"); err != nil {
		in.Readiness = manifest.ReadinessCloudInit
		out, err = a.WaitReady(bounded10s(t), in)
		require.NoError(t, err)
		require.Equal(t, "cloud-init is not installed in the guest", out.Warning)
	}

	in.HostKeys = []string{line(signer(t, 'x'))}
	_, err = a.WaitReady(bounded10s(t), in)
	require.ErrorContains(t, err, "another host key")
	require.Equal(t, errs.Operator, errs.ClassOf(err))
}
