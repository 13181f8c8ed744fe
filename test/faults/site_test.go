package faults

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"golang.org/x/crypto/ssh"
	"golang.org/x/sys/unix"

	"burrow.dev/burrow/internal/devstacktest"
	"burrow.dev/burrow/internal/etcdstate"
	"burrow.dev/burrow/internal/installation"
	"burrow.dev/burrow/internal/temporalclient"
)

// patience bounds every wait for a condition; a busy machine needs much of it.
const patience = 8 * time.Minute

// site is one installation in this test's hypervisor.
type site struct {
	t        testing.TB
	conf     *installation.Configuration
	orders   orders
	temp     string // TMPDIR of all its processes
	devstack *keeper
	worker   *keeper
	temporal client.Client
	store    *etcdstate.Store
	keys     *keyServer
	cluster  *devstacktest.EtcdCluster // of three members; nil: the devstack's own etcd
	seed     string
	bundle   string     // of the playbook
	witness  string     // where the playbook says what it saw
	images   string     // files to make images of
	struck   sync.Mutex // one disaster at a time
}

// newSite brings an installation up; it is gone when the test ends.
func newSite(t testing.TB) *site { return newSiteOn(t, nil) }

// newSiteOn is newSite with the state in a cluster of its own.
func newSiteOn(t testing.TB, cluster *devstacktest.EtcdCluster) *site {
	t.Helper()
	folder, err := installation.OpenFolder("/var/lib/burrow")
	require.NoError(t, err)
	s := &site{t: t, orders: orders(t.TempDir()), temp: t.TempDir(), seed: seed(t), cluster: cluster, images: t.TempDir()}
	require.NoError(t, os.Chmod(s.temp, 0o1777))
	allow := true
	s.conf, err = installation.Configure(t.Context(), folder, installation.Settings{
		HostName: "lab", Accelerator: "tcg", KeysAllowPrivate: &allow,
	}, installation.SystemAccounts{})
	require.NoError(t, err)
	s.conf.Worker.Host.CacheDir = filepath.Join(string(folder), "cache")
	s.conf.Worker.Keys.AllowHTTP = true
	if cluster != nil {
		prefix := s.conf.Worker.Etcd.Prefix
		s.conf.Worker.Etcd = cluster.Config()
		s.conf.Worker.Etcd.Prefix = prefix
	}
	text, err := json.Marshal(s.conf.Worker)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(folder.WorkerFile(), text, 0o600))
	for _, dir := range []string{"log", "run", "pool"} {
		require.NoError(t, os.MkdirAll(filepath.Join(string(folder), dir), 0o755))
	}
	// A disk of its own, which a test can fill.
	require.NoError(t, unix.Mount("tmpfs", s.conf.Worker.PoolDir(), "tmpfs", 0, poolOptions))
	devstack, err := devstacktest.Binary()
	require.NoError(t, err)
	self, err := os.Executable()
	require.NoError(t, err)
	parts, err := s.conf.Parts(self, devstack)
	require.NoError(t, err)
	s.devstack = newKeeper(string(folder), parts[0], "TMPDIR="+s.temp)
	s.worker = newKeeper(string(folder), parts[1], "TMPDIR="+s.temp, programEnv+"="+string(s.orders))
	s.keys = newKeyServer(t)
	t.Cleanup(s.remove)
	require.NoError(t, s.devstack.start())
	s.await(s.devstack.ready)
	require.NoError(t, s.worker.start())
	s.connect()
	s.await(s.worker.ready)
	return s
}

// poolOptions: sparse volumes are counted by their full size.
const poolOptions = "size=64t"

// connect gives the harness its own way to Temporal and etcd.
func (s *site) connect() {
	s.t.Helper()
	var err error
	quiet := slog.New(slog.DiscardHandler)
	s.temporal, err = temporalclient.Dial(s.t.Context(), s.conf.Client.Temporal, quiet)
	require.NoError(s.t, err)
	s.store, err = etcdstate.Open(s.conf.Worker.Etcd, etcdstate.Options{Logger: quiet})
	require.NoError(s.t, err)
}

// remove stops everything and empties the folder for the next test.
func (s *site) remove() {
	if s.t.Failed() {
		s.showLogs()
	}
	if s.store != nil {
		s.temporal.Close()
		_ = s.store.Close()
	}
	if s.worker.process != nil {
		s.worker.stop()
	}
	if s.devstack.process != nil {
		s.devstack.stop()
	}
	_ = exec.Command("virsh", "-c", "qemu:///system", "pool-destroy", s.conf.Worker.Host.Pool).Run()
	_ = exec.Command("virsh", "-c", "qemu:///system", "pool-undefine", s.conf.Worker.Host.Pool).Run()
	_ = unix.Unmount(s.conf.Worker.PoolDir(), unix.MNT_DETACH)
	entries, err := os.ReadDir(string(s.conf.Folder))
	require.NoError(s.t, err)
	for _, e := range entries {
		require.NoError(s.t, os.RemoveAll(filepath.Join(string(s.conf.Folder), e.Name())))
	}
}

// await waits with patience for what must happen.
func (s *site) await(what func(context.Context) error) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	require.NoError(s.t, what(ctx))
}

// logLines is what an error about the whole installation shows of each log.
const logMost = 6000

func (s *site) showLogs() {
	logs, _ := filepath.Glob(filepath.Join(string(s.conf.Folder), "log", "*.log"))
	for _, path := range logs {
		text, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		if len(text) > logMost {
			text = text[len(text)-logMost:]
		}
		s.t.Logf("== %s\n%s", path, text)
	}
}

// burrow runs the program as a user does and gives what it printed.
func (s *site) burrow(ctx context.Context, args ...string) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, self, args...)
	cmd.Env = append(os.Environ(), programEnv+"="+string(s.orders), "BURROW_CONFIG="+s.conf.Folder.ClientFile(), "NO_COLOR=1", "TMPDIR="+s.temp)
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("burrow %v: %w: %s", args, err, out)
	}
	return string(out), err
}

// must runs the program, which must succeed.
func (s *site) must(args ...string) string {
	s.t.Helper()
	out, err := s.burrow(s.t.Context(), args...)
	require.NoError(s.t, err)
	return out
}

// keyServer serves login keys, well or badly by the first part of the path (/good, /404,
// /500, /html, /slow); the second is the server's name, for which it can be mended.
type keyServer struct {
	*httptest.Server
	mu     sync.Mutex
	mended map[string]chan struct{}
	count  map[string]int
}

func (k *keyServer) asked(name string) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.count[name]
}

func (k *keyServer) heal(name string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	close(k.mending(name))
}

// mending gives the channel that is closed once a name is served well; mu is held.
func (k *keyServer) mending(name string) chan struct{} {
	if k.mended[name] == nil {
		k.mended[name] = make(chan struct{})
	}
	return k.mended[name]
}

func newKeyServer(t testing.TB) *keyServer {
	pub, _, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	key, err := ssh.NewPublicKey(pub)
	require.NoError(t, err)
	loginKey := string(ssh.MarshalAuthorizedKey(key))
	k := &keyServer{mended: map[string]chan struct{}{}, count: map[string]int{}}
	k.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		how, name := filepath.Base(filepath.Dir(r.URL.Path)), filepath.Base(r.URL.Path)
		k.mu.Lock()
		k.count[name]++
		mended := k.mending(name)
		k.mu.Unlock()
		select {
		case <-mended:
			how = "good"
		default:
		}
		switch how {
		case "404":
			http.NotFound(w, r)
		case "500":
			http.Error(w, "broken", http.StatusInternalServerError)
		case "html":
			_, _ = io.WriteString(w, "<html><body>Sign in to continue</body></html>")
		case "slow":
			select {
			case <-mended:
				_, _ = io.WriteString(w, loginKey)
			case <-r.Context().Done():
			}
		default:
			_, _ = io.WriteString(w, loginKey)
		}
	}))
	t.Cleanup(k.Close)
	return k
}
