package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"burrow.dev/burrow/internal/config"
	"burrow.dev/burrow/internal/devstacktest"
	"burrow.dev/burrow/internal/etcdstate"
	"burrow.dev/burrow/manifest"
	"burrow.dev/burrow/worker"
)

// liveWatch is `burrow get servers -w -o json` over a real gateway and a real etcd.
type liveWatch struct {
	*world
	etcd  *devstacktest.Member
	store *etcdstate.Store
	out   *screenText
}

func newLiveWatch(t *testing.T) *liveWatch {
	t.Helper()
	w := &liveWatch{world: newWorld(t), etcd: devstacktest.StartEtcd(t), out: &screenText{}}
	var err error
	w.store, err = etcdstate.Open(config.Etcd{Endpoints: []string{w.etcd.EtcdEndpoint}}, etcdstate.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, w.store.Close()) })
	w.deps.Records = worker.NewRecords(w.store)
	return w
}

func (w *liveWatch) watch() {
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.t.Context()))
	code := make(chan int, 1)
	go func() { code <- w.burrow(ctx, nil, w.out, io.Discard, "get", "servers", "-w", "-o", "json") }()
	w.t.Cleanup(func() { cancel(); require.Equal(w.t, ExitStopped, <-code) })
}

func (w *liveWatch) create(name string) string {
	w.t.Helper()
	uid := uuid.NewString()
	_, err := w.store.Create(w.t.Context(), manifest.Record{
		APIVersion: manifest.APIVersion, Kind: manifest.KindServer, Spec: json.RawMessage(`{}`),
		Metadata: manifest.RecordMeta{Metadata: manifest.Metadata{Name: name}, UID: uid}, Status: manifest.Status{Phase: manifest.PhaseRunning},
	})
	require.NoError(w.t, err)
	return uid
}

// set writes a record, through whatever etcd is going through.
func (w *liveWatch) set(name string, generation int64) {
	w.t.Helper()
	require.Eventually(w.t, func() bool {
		_, err := w.store.Update(w.t.Context(), manifest.KindServer, name, func(r *manifest.Record) error { r.Metadata.Generation = generation; return nil })
		return err == nil
	}, 2*soon, 5*time.Millisecond)
}

// lines gives what was printed, as "db 3" or "db gone", and checks that no line of a
// record is older than one before it.
func (w *liveWatch) lines() []string {
	w.t.Helper()
	newest := map[string]int64{}
	var out []string
	for line := range strings.Lines(w.out.String()) {
		var c change
		if !strings.HasSuffix(line, "\n") {
			break // being written
		}
		require.NoError(w.t, json.Unmarshal([]byte(line), &c), "%s", line)
		name, version := c.Record.Metadata.Name, c.Record.Metadata.ResourceVersion
		if c.Deleted {
			out = append(out, name+" gone")
			continue
		}
		require.Greater(w.t, version, newest[name], "%s: printed twice, or older after newer", name)
		newest[name] = version
		out = append(out, fmt.Sprintf("%s %d", name, c.Record.Metadata.Generation))
	}
	return out
}

func (w *liveWatch) prints(want string) {
	w.t.Helper()
	require.Eventually(w.t, func() bool {
		lines := w.lines()
		return len(lines) > 0 && lines[len(lines)-1] == want
	}, 2*soon, 10*time.Millisecond, "%s is not printed", want)
}

func TestAWatchOverEtcdSurvivesARestartOfTheWorkerAndACompactionMeanwhile(t *testing.T) {
	w := newLiveWatch(t)
	w.create("db")
	first := w.create("again")
	w.create("gone")
	w.start()
	w.watch()
	require.Eventually(t, func() bool { return len(w.lines()) == 3 }, soon, 5*time.Millisecond)

	w.stop()
	for n := range int64(5) {
		w.set("db", n+1)
	}
	rec, err := w.store.Get(t.Context(), manifest.KindServer, "gone")
	require.NoError(t, err)
	require.NoError(t, w.store.Delete(t.Context(), manifest.KindServer, "gone", rec.Metadata.UID))
	require.NoError(t, w.store.Delete(t.Context(), manifest.KindServer, "again", first))
	second := w.create("again")
	require.NoError(t, w.store.Delete(t.Context(), manifest.KindServer, "never", w.create("never")))
	now, err := w.store.Client().Get(t.Context(), "x")
	require.NoError(t, err)
	_, err = w.store.Client().Compact(t.Context(), now.Header.Revision)
	require.NoError(t, err)
	w.start()
	w.prints("gone gone")
	require.Equal(t, []string{"again 0", "db 5", "gone gone"}, w.lines()[3:], "the latest of each, once")
	require.Contains(t, w.out.String(), second, "made again under its name: another uid")

	w.set("db", 6)
	w.prints("db 6")
}

func TestAWatchOverEtcdTellsOfDeletionAndMakingAgain(t *testing.T) {
	w := newLiveWatch(t)
	first := w.create("db")
	w.start()
	w.watch()
	w.prints("db 0")
	require.NoError(t, w.store.Delete(t.Context(), manifest.KindServer, "db", first))
	w.prints("db gone")
	second := w.create("db")
	w.prints("db 0")
	require.Contains(t, w.out.String(), second)
}

func TestAWatchOverEtcdLosesNothingWhileEverythingRestarts(t *testing.T) {
	w := newLiveWatch(t)
	names := []string{"a", "b", "c"}
	for _, name := range names {
		w.create(name)
	}
	w.start()
	w.watch()
	require.Eventually(t, func() bool { return len(w.lines()) == len(names) }, soon, 5*time.Millisecond)
	for n := range int64(30) {
		switch n {
		case 8:
			require.Eventually(t, func() bool { return strings.Contains(strings.Join(w.lines(), "\n")+"\n", "c 8\n") }, soon, 5*time.Millisecond)
			w.stop()
		case 14:
			w.start()
		case 20:
			require.NoError(t, w.etcd.Kill())
			w.etcd.Restart()
		}
		for _, name := range names {
			w.set(name, n+1)
		}
	}
	for _, name := range names {
		w.set(name, 100)
	}
	require.Eventually(t, func() bool {
		last := map[string]string{}
		for _, line := range w.lines() {
			last[line[:1]] = line
		}
		return last["a"] == "a 100" && last["b"] == "b 100" && last["c"] == "c 100"
	}, 2*soon, 10*time.Millisecond)
	require.NotContains(t, w.lines(), "a gone")
}

func TestAFirstListThatWasCutShortIsPrintedAsItIsAtItsEnd(t *testing.T) {
	w := &watcher{seen: map[Ref]seen{}}
	rec := func(name string, version int64) manifest.Record {
		var r manifest.Record
		r.Kind, r.Metadata.Name, r.Metadata.ResourceVersion = manifest.KindServer, name, version
		return r
	}
	w.seen[Ref{manifest.KindServer, "same"}] = seen{version: 1, fresh: true}
	w.seen[Ref{manifest.KindServer, "changed"}] = seen{version: 2, fresh: true}
	w.seen[Ref{manifest.KindServer, "gone"}] = seen{version: 1}
	require.False(t, w.outdated(rec("same", 1)))
	require.True(t, w.outdated(rec("changed", 1)))
	require.False(t, w.outdated(rec("changed", 2)))
	require.True(t, w.outdated(rec("gone", 1)))
}
