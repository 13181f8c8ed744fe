package ansible

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/crypto/ssh"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/internal/bundle"
	"burrow.dev/burrow/manifest"
	"burrow.dev/burrow/test/lab"
)

// runner is the unprivileged account of these tests: it is on every machine.
const runner = "nobody"

// TestMain runs the tests inside a host of their own. The test binary also stands in for
// the burrow program: as "dial", which ssh starts, and as a worker that gets killed.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "dial" {
		os.Exit(dialMain(os.Args[3], os.Args[4]))
	}
	if len(os.Args) > 1 && os.Args[1] == "worker" {
		os.Exit(workerMain(os.Args[2]))
	}
	lab.Main(m)
}

// dialMain is `burrow dial --socket PATH NAME`.
func dialMain(socket, name string) int {
	conn, err := net.Dial("unix", socket)
	if err != nil {
		return 1
	}
	fmt.Fprintf(conn, "%s\n", name)
	go func() { _, _ = io.Copy(conn, os.Stdin) }()
	_, _ = io.Copy(os.Stdout, conn)
	return 0
}

// privateRoot hides root's home behind an empty one: Ansible writes to its target's home.
var privateRoot = sync.OnceValue(func() error { return syscall.Mount("tmpfs", "/root", "tmpfs", 0, "mode=0700") })

// guest is a real sshd that stands for a server.
type guest struct {
	addr       string // where it listens
	hostKey    ssh.Signer
	management ssh.Signer
}

func newKey(t *testing.T) (ssh.Signer, []byte) {
	t.Helper()
	_, priv, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	signer, err := ssh.NewSignerFromKey(priv)
	require.NoError(t, err)
	block, err := ssh.MarshalPrivateKey(priv, "")
	require.NoError(t, err)
	return signer, pem.EncodeToMemory(block)
}

func startGuest(t *testing.T) *guest {
	t.Helper()
	require.NoError(t, privateRoot())
	require.NoError(t, os.MkdirAll("/run/sshd", 0o755))
	dir := t.TempDir()
	g := &guest{}
	var hostPEM []byte
	g.hostKey, hostPEM = newKey(t)
	g.management, _ = newKey(t)
	write := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, data, 0o600))
		return path
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	g.addr = l.Addr().String()
	require.NoError(t, l.Close())
	_, port, _ := net.SplitHostPort(g.addr)
	conf := write("sshd_config", fmt.Appendf(nil, `ListenAddress 127.0.0.1
Port %s
HostKey %s
AuthorizedKeysFile %s
PidFile none
UsePAM no
StrictModes no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
Subsystem sftp internal-sftp
`, port, write("host_key", hostPEM), write("authorized_keys", ssh.MarshalAuthorizedKey(g.management.PublicKey()))))
	cmd := exec.Command("/usr/sbin/sshd", "-D", "-e", "-f", conf)
	var out bytes.Buffer
	cmd.Stderr = &out
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("sshd: %s", out.String())
		}
	})
	require.Eventually(t, func() bool {
		c, err := net.Dial("tcp", g.addr)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	}, 10*time.Second, 20*time.Millisecond)
	return g
}

// site is a worker with one server, "db", on the network "db-net".
type site struct {
	t     *testing.T
	a     *Activities
	guest *guest
	blobs blobs
	nets  networks
	keys  keyring
	set   secretsSet
	dir   string // runs
	// before are the goroutines that are none of the activities'.
	before goleak.Option
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{t: t, guest: startGuest(t), blobs: blobs{t.TempDir()}, dir: runsDir(t)}
	s.set = secretsSet{}
	s.nets, s.keys = networks{"db-net": s.guest}, keyring{"uid-db-0001": s.guest.management}
	s.a = s.activities()
	s.before = goleak.IgnoreCurrent()
	return s
}

// runsDir is short, for socket paths, and passable for everybody.
func runsDir(t *testing.T) string {
	dir, err := os.MkdirTemp("/tmp", "bw")
	require.NoError(t, err)
	require.NoError(t, os.Chmod(dir, 0o711))
	t.Cleanup(func() { _ = errors.Join(os.RemoveAll(dir), os.RemoveAll(dir+"-galaxy")) })
	return dir
}

func (s *site) activities() *Activities {
	a, err := New(Options{RunsDir: s.dir, GalaxyDir: s.dir + "-galaxy", User: runner, Blobs: s.blobs, Dialer: s.nets, Keys: s.keys, Secrets: s.set})
	require.NoError(s.t, err)
	return a
}

// bundle stores a folder made of files and gives its digest.
func (s *site) bundle(files map[string]string) string {
	dir := s.t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		require.NoError(s.t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(s.t, os.WriteFile(path, []byte(text), 0o644))
	}
	var buf bytes.Buffer
	_, _, err := bundle.Pack(dir, &buf)
	require.NoError(s.t, err)
	return s.store(buf.Bytes())
}

// store puts bytes where a bundle is looked for, and gives their digest.
func (s *site) store(data []byte) string {
	sum := sha256.Sum256(data)
	digest := hex.EncodeToString(sum[:])
	require.NoError(s.t, s.blobs.Put(s.t.Context(), "bundles/"+digest+".tar.zst", bytes.NewReader(data)))
	return "sha256:" + digest
}

func line(s ssh.Signer) string { return string(ssh.MarshalAuthorizedKey(s.PublicKey())) }

// in asks for a run of site.yaml out of files on the server db.
func (s *site) in(files map[string]string) RunIn {
	spec := manifest.Ansible{Playbook: []string{"site.yaml"}, Timeout: "5m"}
	if _, ok := files["hosts.yaml"]; ok {
		spec.Inventory = "hosts.yaml"
	}
	return RunIn{
		Owner: "server/db", Bundle: s.bundle(files), Ansible: spec,
		Hosts: []Host{{
			Server: activities.Server{Name: "db", UID: "uid-db-0001"}, Network: "db-net", Address: "172.16.90.2", Login: "root",
			HostKeys: []string{line(s.guest.hostKey)},
			Labels:   map[string]string{"role": "db"}, Networks: []string{"db-net"}, Image: "debian12",
		}},
	}
}

// log gives the stored log of the server's last run.
func (s *site) log() string {
	s.t.Helper()
	r, err := s.a.Logs().Open(s.t.Context(), manifest.Record{Metadata: manifest.RecordMeta{UID: "uid-db-0001"}}, "", false)
	require.NoError(s.t, err)
	defer r.Close()
	text, err := io.ReadAll(r)
	require.NoError(s.t, err)
	return string(text)
}

// nothingLeft proves that no process of any run and no run folder is there.
func (s *site) nothingLeft() {
	s.t.Helper()
	goleak.VerifyNone(s.t, s.before)
	require.Empty(s.t, marked(s.t))
	entries, err := os.ReadDir(s.dir)
	require.NoError(s.t, err)
	for _, e := range entries {
		require.True(s.t, strings.HasPrefix(e.Name(), ".burrow-"), "%s is left", e.Name())
	}
}

// marked lists the processes that carry the mark of a run, or run as its user.
func marked(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	require.NoError(t, err)
	var found []string
	for _, e := range entries {
		env, err := os.ReadFile("/proc/" + e.Name() + "/environ")
		if err == nil && bytes.Contains(env, []byte("BURROW_RUN=")) {
			cmd, _ := os.ReadFile("/proc/" + e.Name() + "/cmdline")
			found = append(found, e.Name()+" "+strings.ReplaceAll(string(cmd), "\x00", " "))
		}
	}
	return found
}

// lastLog is log for the message of a failed assertion.
func (s *site) lastLog() string {
	keys, _ := s.blobs.List(s.t.Context(), "logs/uid-db-0001")
	if len(keys) == 0 {
		return "no log"
	}
	text, _ := os.ReadFile(filepath.Join(s.blobs.dir, keys[len(keys)-1]))
	return string(text)
}
