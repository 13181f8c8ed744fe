package backup

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"burrow.dev/burrow/internal/blob"
	"burrow.dev/burrow/internal/config"
	"burrow.dev/burrow/internal/devstacktest"
	"burrow.dev/burrow/internal/etcdstate"
	"burrow.dev/burrow/manifest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds every wait for something that happens by itself.
const patience = 20 * time.Second

var fixedTime = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// installation is a store of records and one of blobs.
type installation struct {
	t       *testing.T
	records *etcdstate.Store
	blobs   *blob.Store
}

func newInstallation(t *testing.T) *installation {
	t.Helper()
	return installationOn(t, devstacktest.Etcd(t))
}

func installationOn(t *testing.T, endpoint string) *installation {
	t.Helper()
	store, err := etcdstate.Open(config.Etcd{Endpoints: []string{endpoint}}, etcdstate.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	blobs, err := blob.Open(t.Context(), "file://"+filepath.Join(t.TempDir(), "blobs"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, blobs.Close()) })
	return &installation{t: t, records: store, blobs: blobs}
}

// server writes a server's record with a bundle and a log, and both blobs.
func (i *installation) server(name string) manifest.Record {
	i.t.Helper()
	content := []byte("playbook of " + name)
	sum := sha256.Sum256(content)
	digest := "sha256:" + hex.EncodeToString(sum[:])
	key, err := blob.BundleKey(digest)
	require.NoError(i.t, err)
	require.NoError(i.t, i.blobs.Put(i.t.Context(), key, bytes.NewReader(content)))
	log := blob.LogKey("uid-"+name, "run-1")
	require.NoError(i.t, i.blobs.Put(i.t.Context(), log, strings.NewReader("log of "+name)))
	rec, err := i.records.Create(i.t.Context(), manifest.Record{
		APIVersion: manifest.APIVersion, Kind: manifest.KindServer,
		Metadata: manifest.RecordMeta{Metadata: manifest.Metadata{Name: name}, UID: "uid-" + name},
		Spec:     json.RawMessage(`{}`),
		Status:   manifest.Status{Phase: manifest.PhaseRunning, Bundle: digest, Playbook: &manifest.PlaybookStatus{RunID: "run-1", LogKey: log}},
	})
	require.NoError(i.t, err)
	return rec
}

func (i *installation) backup(history *History) ([]byte, End) {
	i.t.Helper()
	var file bytes.Buffer
	end, err := Create(i.t.Context(), &file, Header{Made: time.Now(), Prefix: config.DefaultPrefix}, i.records, i.blobs, history)
	require.NoError(i.t, err)
	return file.Bytes(), end
}

func (i *installation) restore(file []byte, replace bool) error {
	contents, err := Verify(i.t.Context(), bytes.NewReader(file))
	if err != nil {
		return err
	}
	taken, err := i.records.BeginRestore(i.t.Context(), replace, time.Minute)
	if err != nil {
		return err
	}
	return Restore(i.t.Context(), bytes.NewReader(file), contents, World{Records: taken, Blobs: i.blobs, TempDir: i.t.TempDir()})
}

// kept gives all keys that a backup would hold, by key.
func (i *installation) kept() map[string]etcdstate.Kept {
	i.t.Helper()
	all := map[string]etcdstate.Kept{}
	_, err := i.records.EachKept(i.t.Context(), 0, func(k etcdstate.Kept) error { all[k.Key] = k; return nil })
	require.NoError(i.t, err)
	return all
}

// requireSame compares values, and which keys were written together.
func requireSame(t *testing.T, want, got map[string]etcdstate.Kept) {
	t.Helper()
	require.Len(t, got, len(want))
	together := map[int64]int64{}
	for key, w := range want {
		g, ok := got[key]
		require.True(t, ok, key)
		require.Equal(t, w.Value, g.Value, key)
		require.Equal(t, w.Quarantined, g.Quarantined, key)
		if now, seen := together[w.Revision]; seen {
			require.Equal(t, now, g.Revision, "%s was written together with others", key)
		}
		together[w.Revision] = g.Revision
	}
}

func (i *installation) blob(key string) string {
	i.t.Helper()
	r, err := i.blobs.Get(i.t.Context(), key)
	require.NoError(i.t, err)
	defer r.Close()
	text, err := io.ReadAll(r)
	require.NoError(i.t, err)
	return string(text)
}

// hooked lets a test do something at a moment of a backup.
type hooked struct {
	Records
	after func(rev int64)
}

func (h hooked) EachKept(ctx context.Context, rev int64, fn func(etcdstate.Kept) error) (int64, error) {
	at, err := h.Records.EachKept(ctx, rev, fn)
	if err == nil {
		h.after(rev)
	}
	return at, err
}
