package worker

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/proto"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/activities/seed"
	"burrow.dev/burrow/internal/config"
	"burrow.dev/burrow/internal/devstacktest"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/etcdstate"
	"burrow.dev/burrow/internal/gateway"
	"burrow.dev/burrow/internal/keyring"
	"burrow.dev/burrow/manifest"
)

// logLines is a log that may be read while it is written to.
type logLines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logLines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logLines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// writeSeed is a workflow of the one step that reads a secret.
func writeSeed(ctx workflow.Context, in seed.WriteIn) (seed.WriteOut, error) {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute})
	var out seed.WriteOut
	return out, workflow.ExecuteActivity(ctx, activities.SeedWrite, in).Get(ctx, &out)
}

func TestASecretIsNowhereInClear(t *testing.T) {
	const planted = "hunter2-planted-in-the-store"
	ctx := t.Context()
	var log logLines
	stack := devstacktest.Stack(t)
	logger := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	tc, err := client.DialContext(ctx, client.Options{HostPort: stack.TemporalAddress, Namespace: stack.Namespace, Logger: sdklog.NewStructuredLogger(logger)})
	require.NoError(t, err)
	t.Cleanup(tc.Close)
	store, err := etcdstate.Open(config.Etcd{Endpoints: []string{stack.EtcdEndpoint}}, etcdstate.Options{Logger: logger})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	dir, err := os.MkdirTemp("", "secret") // t.TempDir is too long for a socket
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	require.NoError(t, os.WriteFile(filepath.Join(dir, "key"), bytes.Repeat([]byte{1}, keyring.KeySize), 0o600))
	ring, err := keyring.Open(ctx, keyring.Options{File: filepath.Join(dir, "key"), Log: logger})
	require.NoError(t, err)
	p := &parts{Options: Options{Log: logger}, temporal: tc, store: store, secrets: etcdstate.OpenSecrets(store, ring)}
	gw := serveGateway(t, p, filepath.Join(dir, "gw"))

	// A server names it, and its seed is written by the host's worker, as a step of a workflow.
	uid := uuid.NewString()
	_, err = store.Create(ctx, manifest.Record{
		Kind: manifest.KindServer, Metadata: manifest.RecordMeta{Metadata: manifest.Metadata{Name: "db"}, UID: uid},
		Spec: json.RawMessage(`{"auth":{"rootPassword":"secret:pw"}}`), Status: manifest.Status{Phase: manifest.PhaseProvisioning},
	})
	require.NoError(t, err)
	seeds := seed.New(seed.Config{Dir: filepath.Join(dir, "seeds"), Secrets: p.secrets, Passwords: p.secrets.Users(), Log: logger})
	w := p.newWorker("host/kvm1", hostWide, map[string]any{activities.SeedWrite: seeds.Write})
	w.RegisterWorkflow(writeSeed)
	require.NoError(t, w.Start())
	t.Cleanup(w.Stop)
	in := seed.WriteIn{
		Server: activities.Server{Name: "db", UID: uid}, Hostname: "db", Login: "debian",
		Auth: manifest.Auth{RootPassword: "secret:pw"},
	}
	run := func(id string) (seed.WriteOut, error) {
		started, err := tc.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: id, TaskQueue: "host/kvm1"}, "writeSeed", in)
		require.NoError(t, err)
		var out seed.WriteOut
		return out, started.Get(ctx, &out)
	}
	_, err = run("unset")
	var app *temporal.ApplicationError
	require.ErrorAs(t, err, &app)
	require.Equal(t, string(errs.Permanent), app.Type(), "it is not tried for ever")
	require.ErrorContains(t, err, "burrow secret set pw")

	_, err = gw.SetSecret(ctx, "pw", []byte(planted+"\n"+planted), "alice")
	require.NoError(t, err)
	_, err = run("refused")
	require.ErrorContains(t, err, "a password is one line")
	_, err = gw.SetSecret(ctx, "pw", []byte(planted), "alice")
	require.NoError(t, err)
	out, err := run("written")
	require.NoError(t, err)
	require.ErrorContains(t, gw.RemoveSecret(ctx, "pw"), "it is used by server/db")
	require.NoError(t, gw.RotateKey(ctx, keyring.Rotation{By: "alice"}, func(keyring.Step) {}))
	again, err := run("again")
	require.NoError(t, err)
	require.Equal(t, out.Path, again.Path, "the same seed under another master key")

	iso, err := os.ReadFile(out.Path)
	require.NoError(t, err)
	for name, place := range map[string]struct{ text, control string }{
		"etcd":    {etcdText(t, stack.EtcdEndpoint), "user/pw"},
		"history": {historyText(t, tc, "unset", "refused", "written", "again"), "secret:pw"},
		"log":     {log.String(), "a secret was set"},
		"argv":    {argvText(t), "worker"},
		"seed":    {string(iso), "$6$"},
	} {
		require.Contains(t, place.text, place.control, "%s was really read", name)
		for _, form := range []string{planted, base64.StdEncoding.EncodeToString([]byte(planted))} {
			require.False(t, strings.Contains(place.text, form), "in %s", name)
		}
	}
}

// serveGateway serves a worker's gateway, and gives a client of it.
func serveGateway(t *testing.T, p *parts, socket string) *gateway.Client {
	t.Helper()
	cfg := config.Gateway{Socket: socket}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	served := make(chan error, 1)
	go func() {
		served <- gateway.NewServer(gateway.Deps{Records: NewRecords(p.store), Secrets: secrets{p.secrets}, Log: p.Log}).Serve(ctx, cfg)
	}()
	var gw *gateway.Client
	require.Eventually(t, func() bool {
		var err error
		gw, err = gateway.Dial(ctx, cfg)
		return err == nil
	}, patience, patience/1000)
	t.Cleanup(func() {
		_ = gw.Close()
		cancel()
		require.NoError(t, <-served)
	})
	return gw
}

func etcdText(t *testing.T, endpoint string) string {
	t.Helper()
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{endpoint}})
	require.NoError(t, err)
	defer func() { _ = c.Close() }()
	all, err := c.Get(t.Context(), "\x00", clientv3.WithFromKey())
	require.NoError(t, err)
	var b strings.Builder
	for _, kv := range all.Kvs {
		first, err := c.Get(t.Context(), string(kv.Key), clientv3.WithRev(kv.CreateRevision)) // older ones are there too
		require.NoError(t, err)
		for _, old := range first.Kvs {
			b.Write(old.Value)
		}
		b.Write(kv.Key)
		b.Write(kv.Value)
	}
	return b.String()
}

// historyText is the events as they are stored, payloads in clear.
func historyText(t *testing.T, c client.Client, ids ...string) string {
	t.Helper()
	var b strings.Builder
	for _, id := range ids {
		events := c.GetWorkflowHistory(t.Context(), id, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
		for events.HasNext() {
			event, err := events.Next()
			require.NoError(t, err)
			raw, err := proto.Marshal(event)
			require.NoError(t, err)
			b.Write(raw)
		}
	}
	return b.String()
}

// argvText is the arguments of every process on this machine.
func argvText(t *testing.T) string {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	require.NoError(t, err)
	var b strings.Builder
	for _, file := range files {
		if content, err := os.ReadFile(file); err == nil { // others may have ended
			b.Write(content)
		}
	}
	return b.String()
}
