package installation_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"burrow.dev/burrow/internal/addrspace"
	"burrow.dev/burrow/internal/backup"
	"burrow.dev/burrow/internal/blob"
	"burrow.dev/burrow/internal/config"
	"burrow.dev/burrow/internal/devstacktest"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/etcdstate"
	"burrow.dev/burrow/internal/etcdstate/addresses"
	"burrow.dev/burrow/internal/installation"
	"burrow.dev/burrow/internal/keyring"
	"burrow.dev/burrow/internal/temporalclient"
	"burrow.dev/burrow/manifest"
)

func (m *machine) store() *etcdstate.Store {
	m.t.Helper()
	store, err := etcdstate.Open(m.worker().Etcd, etcdstate.Options{})
	require.NoError(m.t, err)
	m.t.Cleanup(func() { _ = store.Close() })
	return store
}

func (m *machine) temporal() client.Client {
	m.t.Helper()
	c, err := temporalclient.Dial(m.t.Context(), m.worker().Temporal, slog.New(slog.DiscardHandler))
	require.NoError(m.t, err)
	m.t.Cleanup(c.Close)
	return c
}

func (m *machine) secrets() *etcdstate.Secrets {
	m.t.Helper()
	ring, err := keyring.Open(m.t.Context(), keyring.Options{File: m.worker().MasterKeyFile})
	require.NoError(m.t, err)
	return etcdstate.OpenSecrets(m.store(), ring)
}

// world gives every key that a backup would hold.
func (m *machine) world() map[string]string {
	m.t.Helper()
	store, err := etcdstate.Open(m.worker().Etcd, etcdstate.Options{})
	require.NoError(m.t, err)
	defer store.Close() // at once: etcd's end waits for its clients
	all := map[string]string{}
	_, err = store.EachKept(m.t.Context(), 0, func(k etcdstate.Kept) error {
		if !k.Quarantined {
			all[k.Key] = string(k.Value)
		}
		return nil
	})
	require.NoError(m.t, err)
	return all
}

// fill makes a record with its blobs, addresses, a secret and an open workflow, and gives its run.
func (m *machine) fill() (run string) {
	m.t.Helper()
	ctx := m.t.Context()
	store := m.store()
	blobs, err := blob.Open(ctx, m.worker().Blobs)
	require.NoError(m.t, err)
	defer blobs.Close()
	log := blob.LogKey("uid-db", "run-1")
	require.NoError(m.t, blobs.Put(ctx, log, strings.NewReader("PLAY RECAP")))
	_, err = store.Create(ctx, manifest.Record{
		APIVersion: manifest.APIVersion, Kind: manifest.KindServer, Spec: []byte(`{"cpu":2}`),
		Metadata: manifest.RecordMeta{Metadata: manifest.Metadata{Name: "db"}, UID: "uid-db"},
		Status:   manifest.Status{Phase: manifest.PhaseRunning, Playbook: &manifest.PlaybookStatus{RunID: "run-1", LogKey: log}},
	})
	require.NoError(m.t, err)
	pool := addresses.New(store, addresses.Options{})
	defer pool.Close()
	_, err = pool.Settle(ctx, "net-1", "net", func([]addrspace.Entry) (manifest.NetworkStatus, error) {
		return manifest.NetworkStatus{Subnets: []manifest.Subnet{{CIDR: "10.0.0.0/24", Gateway: "10.0.0.1"}}}, nil
	})
	require.NoError(m.t, err)
	_, err = pool.Allocate(ctx, "net-1", []addrspace.Want{{Owner: "uid-db/eth0/0"}})
	require.NoError(m.t, err)
	require.NoError(m.t, m.secrets().Put(ctx, "server-keys/uid-db", []byte("very secret")))
	run, err = startIdle(ctx, m.temporal(), "server/db")
	require.NoError(m.t, err)
	return run
}

// requireFilled looks whether all that fill made is there.
func (m *machine) requireFilled(run string) {
	m.t.Helper()
	ctx := m.t.Context()
	_, err := m.store().Get(ctx, manifest.KindServer, "db")
	require.NoError(m.t, err)
	secret, err := m.secrets().Get(ctx, "server-keys/uid-db")
	require.NoError(m.t, err)
	require.Equal(m.t, "very secret", string(secret))
	blobs, err := blob.Open(ctx, m.worker().Blobs)
	require.NoError(m.t, err)
	defer blobs.Close()
	there, err := blobs.Exists(ctx, blob.LogKey("uid-db", "run-1"))
	require.NoError(m.t, err)
	require.True(m.t, there)
	if run != "" {
		described, err := m.temporal().DescribeWorkflow(ctx, "server/db", "")
		require.NoError(m.t, err)
		require.Equal(m.t, run, described.WorkflowExecution.RunID)
		require.Equal(m.t, enums.WORKFLOW_EXECUTION_STATUS_RUNNING, described.Status)
	}
}

func (m *machine) backup(args ...string) string {
	m.t.Helper()
	file := filepath.Join(m.t.TempDir(), "backup")
	output := m.must(0, append([]string{"backup", file}, args...)...)
	require.Contains(m.t, output, "the master key ("+filepath.Join(m.dir, "master.key")+")")
	return file
}

// devstackFlag gives the flag that names the program.
func (m *machine) devstackFlag() []string { return m.ports[:2] }

func (m *machine) restore(want int, file string, args ...string) string {
	m.t.Helper()
	return m.must(want, append(append([]string{"restore", file}, m.devstackFlag()...), args...)...)
}

func TestALostDataDirectoryComesBack(t *testing.T) {
	m := newMachine(t)
	m.ports = append(m.ports, "--host-name", "kvm1")
	m.up(0)
	run := m.fill()
	before := m.world()
	file := m.backup()
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NotContains(t, string(text), "very secret")
	require.Contains(t, m.must(1, "backup", file), "--force")
	m.must(0, "backup", file, "--force")
	require.Contains(t, m.restore(4, file), "burrow down", "not while it runs")

	key := filepath.Join(t.TempDir(), "master.key")
	copied, err := os.ReadFile(filepath.Join(m.dir, "master.key"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(key, copied, 0o600))
	ports := m.worker().Etcd.Endpoints
	m.must(0, "down")
	require.Contains(t, m.must(1, "backup", filepath.Join(t.TempDir(), "late")), "burrow up")
	require.NoError(t, os.RemoveAll(m.dir))

	output := m.restore(1, file)
	require.Contains(t, output, "--master-key")
	require.NoDirExists(t, m.dir, "nothing is made before it is known to work")
	wrong := filepath.Join(t.TempDir(), "wrong.key")
	other := make([]byte, keyring.KeySize)
	_, _ = rand.Read(other)
	require.NoError(t, os.WriteFile(wrong, other, 0o600))
	require.Contains(t, m.restore(1, file, "--master-key", wrong), keyring.ID(copied))

	output = m.restore(0, file, "--master-key", key)
	require.Contains(t, output, "burrow up")
	require.Contains(t, output, "burrow sweep")
	require.Equal(t, "kvm1", m.worker().Host.Name)
	require.Equal(t, ports, m.worker().Etcd.Endpoints)
	m.ports = m.devstackFlag()
	m.up(0)
	require.Equal(t, before, m.world())
	m.requireFilled(run)
}

func TestARestoreGoesBackInTimeAndNothingOfTheLaterWorldRemains(t *testing.T) {
	m := newMachine(t)
	m.up(0)
	run := m.fill()
	before := m.world()
	file := m.backup()
	_, err := m.store().Create(t.Context(), manifest.Record{
		APIVersion: manifest.APIVersion, Kind: manifest.KindServer, Spec: []byte(`{}`),
		Metadata: manifest.RecordMeta{Metadata: manifest.Metadata{Name: "later"}, UID: "uid-later"},
	})
	require.NoError(t, err)
	_, err = startIdle(t.Context(), m.temporal(), "server/later")
	require.NoError(t, err)
	m.must(0, "down")

	require.Contains(t, m.restore(1, file), "--replace")
	m.up(0)
	require.Contains(t, m.world(), "servers/later", "a refused restore changes nothing")
	m.must(0, "down")

	m.restore(0, file, "--replace")
	m.up(0)
	require.Equal(t, before, m.world())
	m.requireFilled(run)
	_, err = m.temporal().DescribeWorkflow(t.Context(), "server/later", "")
	require.Error(t, err)
	m.must(0, "down")

	require.Contains(t, m.restore(0, file, "--replace", "--without-history"), "burrow sweep")
	m.up(0)
	require.Equal(t, before, m.world())
	m.requireFilled("")
	_, err = m.temporal().DescribeWorkflow(t.Context(), "server/db", "")
	require.Error(t, err, "no histories")
}

func TestABackupWithoutHistoriesRestoresTheRest(t *testing.T) {
	m := newMachine(t)
	m.up(0)
	m.fill()
	before := m.world()
	file := m.backup("--without-history")
	m.must(0, "down")
	for _, lost := range []string{"etcd", "temporal", "blobs"} {
		require.NoError(t, os.RemoveAll(filepath.Join(m.dir, lost)))
	}
	require.Contains(t, m.restore(0, file), "burrow up --detach --data-dir "+m.dir, "as it was called")
	staged := filepath.Join(m.dir, "temporal", "restored.db")
	require.NoError(t, os.MkdirAll(filepath.Dir(staged), 0o700))
	require.NoError(t, os.WriteFile(staged, []byte("of a restore that was killed"), 0o600))
	m.up(0)
	require.NoFileExists(t, staged)
	require.Equal(t, before, m.world())
	m.requireFilled("")
}

// withEtcd does something while etcd alone runs.
func (m *machine) withEtcd(do func()) {
	m.t.Helper()
	at, err := url.Parse(m.worker().Etcd.Endpoints[0])
	require.NoError(m.t, err)
	port, err := strconv.Atoi(at.Port())
	require.NoError(m.t, err)
	c := &installation.Configuration{Folder: installation.Folder(m.dir), Ports: installation.Ports{Etcd: port}}
	etcd, err := c.StartEtcd(m.t.Context(), m.ports[1])
	require.NoError(m.t, err)
	defer func() { require.NoError(m.t, etcd.Stop()) }()
	do()
}

// TestAKilledRestoreLeavesNoHalfWorld kills the command when it has begun to write.
func TestAKilledRestoreLeavesNoHalfWorld(t *testing.T) {
	m := newMachine(t)
	m.up(0)
	run := m.fill()
	store := m.store()
	for n := range 3000 {
		_, err := store.Client().Put(t.Context(), store.Key("vnis", fmt.Sprint(n)), strings.Repeat("x", 1000))
		require.NoError(t, err)
	}
	blobs, err := blob.Open(t.Context(), m.worker().Blobs)
	require.NoError(t, err)
	for n := range 200 { // time to be killed in
		require.NoError(t, blobs.Put(t.Context(), blob.LogKey("uid-db", fmt.Sprint("earlier-", n)), strings.NewReader("log")))
	}
	require.NoError(t, blobs.Close())
	backedUp := m.world()
	file := m.backup()
	_, err = store.Client().Put(t.Context(), store.Key("vnis", "later"), "x")
	require.NoError(t, err)
	require.NoError(t, store.Close())
	m.must(0, "down")

	interrupted := 0
	self, err := os.Executable()
	require.NoError(t, err)
	args := append([]string{"restore", file, "--data-dir", m.dir}, m.devstackFlag()...)
	moments := map[string]func(seen progress) bool{
		"wiped": func(seen progress) bool { return seen.wiped }, // and now it writes blobs
	}
	if os.Getenv("BURROW_FAULTS") != "" {
		moments["begun"] = func(seen progress) bool { return seen.marker }
		moments["half written"] = func(seen progress) bool { return seen.wiped && seen.keys > 1500 }
		moments["written"] = func(seen progress) bool { return seen.wiped && seen.keys > 3000 }
	}
	for name, moment := range moments {
		command := exec.CommandContext(t.Context(), self, append(args, "--replace")...)
		command.Env = append(os.Environ(), cliEnv+"=1")
		require.NoError(t, command.Start())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_ = command.Wait() // killed, or just done
		}()
		m.await(moment, ended)
		_ = command.Process.Kill() // it may just be done
		<-ended
		m.awaitUnheld()
		m.withEtcd(func() {
			store, err := etcdstate.Open(m.worker().Etcd, etcdstate.Options{})
			require.NoError(t, err)
			defer store.Close()
			if err = store.Interrupted(t.Context()); err == nil {
				require.Equal(t, backedUp, m.world(), "%s: what is no interrupted restore is whole", name)
				return
			}
			require.ErrorIs(t, err, errs.ErrBusy)
			interrupted++
		})
	}
	require.Positive(t, interrupted)
	m.restore(0, file, "--replace")
	m.up(0)
	require.NoError(t, m.store().Interrupted(t.Context()))
	require.Equal(t, backedUp, m.world())
	m.requireFilled(run)
}

// progress is what is seen of a restore from outside.
type progress struct {
	marker, wiped bool
	keys          int64
}

// await returns when a restore has come to a moment, or past it, or has ended. It asks etcd
// only once that listens: a client that was refused waits longer before it tries again than
// a restore may take.
func (m *machine) await(moment func(progress) bool, ended <-chan struct{}) {
	m.t.Helper()
	endpoint, err := url.Parse(m.worker().Etcd.Endpoints[0])
	require.NoError(m.t, err)
	over := func() bool {
		select {
		case <-ended:
			return true
		default:
			return false
		}
	}
	require.Eventually(m.t, func() bool {
		conn, err := net.DialTimeout("tcp", endpoint.Host, time.Second)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil || over()
	}, time.Minute, time.Millisecond, "etcd listens")
	store, err := etcdstate.Open(m.worker().Etcd, etcdstate.Options{})
	require.NoError(m.t, err)
	defer store.Close()
	var seen progress
	require.Eventually(m.t, func() bool {
		ctx, cancel := context.WithTimeout(m.t.Context(), time.Second)
		defer cancel()
		resp, err := store.Client().Txn(ctx).Then(
			clientv3.OpGet(store.Key(""), clientv3.WithPrefix(), clientv3.WithCountOnly()),
			clientv3.OpGet(store.Key("restoring"), clientv3.WithCountOnly()),
		).Commit()
		if err != nil {
			return over() // etcd has not started yet
		}
		seen.keys = resp.Responses[0].GetResponseRange().Count
		now := resp.Responses[1].GetResponseRange().Count > 0
		done := seen.marker && !now
		seen.marker = now
		seen.wiped = seen.wiped || now && seen.keys < 1000
		return done || over() || moment(seen)
	}, time.Minute, time.Millisecond)
}

// site is a worker's configuration on several machines, with an etcd of its own.
func site(t *testing.T, endpoint string, masterKey []byte) (file string, cfg config.Worker) {
	t.Helper()
	dir := t.TempDir()
	cfg = config.Worker{
		Etcd:  config.Etcd{Endpoints: []string{endpoint}, Prefix: "/site/v1"},
		Blobs: "file://" + filepath.Join(dir, "blobs"), MasterKeyFile: filepath.Join(dir, "master.key"), Host: config.Host{Name: "kvm1"},
	}
	require.NoError(t, os.WriteFile(cfg.MasterKeyFile, masterKey, 0o600))
	text, err := json.Marshal(cfg)
	require.NoError(t, err)
	file = filepath.Join(dir, "worker.json")
	require.NoError(t, os.WriteFile(file, text, 0o600))
	return file, cfg
}

func TestSeveralMachinesAreBackedUpAndRestoredByTheirWorkerJSON(t *testing.T) {
	m := &machine{t: t, dir: filepath.Join(t.TempDir(), "b")}
	key := []byte(strings.Repeat("k", keyring.KeySize))
	from, cfg := site(t, devstacktest.Etcd(t), key)
	store, err := etcdstate.Open(cfg.Etcd, etcdstate.Options{})
	require.NoError(t, err)
	defer store.Close()
	_, err = store.Create(t.Context(), manifest.Record{
		APIVersion: manifest.APIVersion, Kind: manifest.KindServer, Spec: []byte(`{}`),
		Metadata: manifest.RecordMeta{Metadata: manifest.Metadata{Name: "db"}, UID: "uid-db"},
	})
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "backup")
	require.Contains(t, m.must(0, "backup", file, "--worker-config", from), "PostgreSQL")

	require.Contains(t, m.must(1, "restore", file), "--worker-config")
	require.NoDirExists(t, m.dir)
	require.Contains(t, m.must(1, "restore", file, "--worker-config", from), "--replace")
	ctx, cancel := context.WithCancel(t.Context())
	lives := make(chan error, 1)
	go func() { lives <- store.KeepAlive(ctx, "kvm1", func() {}) }()
	require.Eventually(t, func() bool { alive, err := store.AliveHosts(t.Context()); return err == nil && len(alive) == 1 }, 20*time.Second, 10*time.Millisecond)
	output := m.must(4, "restore", file, "--worker-config", from, "--replace")
	require.Contains(t, output, "alive/kvm1")
	require.Contains(t, output, "stop the worker on every machine")
	cancel()
	require.NoError(t, <-lives)

	to, other := site(t, devstacktest.Etcd(t), key)
	require.Contains(t, m.must(0, "restore", file, "--worker-config", to), "burrow sweep")
	restored, err := etcdstate.Open(other.Etcd, etcdstate.Options{})
	require.NoError(t, err)
	defer restored.Close()
	rec, err := restored.Get(t.Context(), manifest.KindServer, "db")
	require.NoError(t, err)
	require.Equal(t, "uid-db", rec.Metadata.UID)
}

func TestABackupGoesToStandardOutputAndItsWordsElsewhere(t *testing.T) {
	from, _ := site(t, devstacktest.Etcd(t), []byte(strings.Repeat("k", keyring.KeySize)))
	self, err := os.Executable()
	require.NoError(t, err)
	command := exec.CommandContext(t.Context(), self, "backup", "-", "--worker-config", from)
	command.Env = append(os.Environ(), cliEnv+"=1")
	var words bytes.Buffer
	command.Stderr = &words
	file, err := command.Output()
	require.NoError(t, err, words.String())
	require.Contains(t, words.String(), "master key")
	_, err = backup.Verify(t.Context(), bytes.NewReader(file))
	require.NoError(t, err)
}
