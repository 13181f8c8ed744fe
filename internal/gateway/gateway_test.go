package gateway

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"burrow.dev/burrow/internal/config"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestInfoSaysWhoAnswers(t *testing.T) {
	d := deps(t, &store{})
	require.Equal(t, d.Info, connect(t, serve(t, d)).Info())
}

func TestRecordsAreReadWhole(t *testing.T) {
	records := &store{}
	for _, name := range []string{"db", "web"} {
		records.records = append(records.records, server(name, "127.0.0.1/8"))
	}
	c := connect(t, serve(t, deps(t, records)))

	rec, err := c.Get(t.Context(), manifest.KindServer, "db")
	require.NoError(t, err)
	require.Equal(t, records.records[0], rec)

	all, err := c.List(t.Context(), manifest.KindServer)
	require.NoError(t, err)
	require.Equal(t, records.records, all)

	none, err := c.List(t.Context(), manifest.KindVolume)
	require.NoError(t, err)
	require.Empty(t, none)
}

func TestAnErrorKeepsItsNameCauseAndNextStepOverTheWire(t *testing.T) {
	c := connect(t, serve(t, deps(t, &store{})))
	_, err := c.Get(t.Context(), manifest.KindServer, "db")
	require.ErrorIs(t, err, errs.ErrNotFound)
	require.EqualError(t, err, "server/db: look up: not found; `burrow get server` lists what there is")
	require.Equal(t, errs.Permanent, errs.ClassOf(err))
}

func TestAPanicIsOneFailedCall(t *testing.T) {
	c := connect(t, serve(t, deps(t, &store{})))
	_, err := c.Get(t.Context(), manifest.KindServer, "panic")
	require.ErrorContains(t, err, "its log has the details")
	require.NotContains(t, err.Error(), "as the test asked")
	_, err = c.List(t.Context(), manifest.KindServer)
	require.NoError(t, err, "the gateway lives on")
}

func TestAMissingDependencyIsNamed(t *testing.T) {
	c := connect(t, serve(t, Deps{Records: &store{records: []manifest.Record{server("db")}}}))
	_, err := c.Console(t.Context(), "db")
	require.ErrorContains(t, err, "this worker has no consoles")
	_, err = c.DialServer(t.Context(), "db", 22)
	require.ErrorContains(t, err, "this worker has no networks")
	_, err = c.AgentConn(t.Context(), "db")
	require.ErrorContains(t, err, "this worker has no management keys")
	require.ErrorContains(t, c.Logs(t.Context(), "db", "", false, io.Discard), "this worker has no run logs")
}

func TestAWatchGivesWhatThereIsThenChanges(t *testing.T) {
	records := &store{records: []manifest.Record{server("db"), server("web")}}
	c := connect(t, serve(t, deps(t, records)))
	var seen []string
	done := errors.New("seen enough")
	err := c.Watch(t.Context(), manifest.KindServer, "db", func(e Event) error {
		seen = append(seen, string(e.Type)+" "+e.Record.Metadata.Name+" "+string(e.Record.Status.Phase))
		switch e.Type {
		case Synced:
			stopped := server("db")
			stopped.Status.Phase = manifest.PhaseStopped
			records.send(Event{Put, server("web")})
			records.send(Event{Put, stopped})
		case Put:
			if e.Record.Status.Phase == manifest.PhaseStopped {
				records.send(Event{Delete, e.Record})
			}
		case Delete:
			return done
		}
		return nil
	})
	require.ErrorIs(t, err, done)
	require.Equal(t, []string{"put db Running", "synced  ", "put db Stopped", "delete db Stopped"}, seen)
}

func TestASlowWatcherGetsTheLatestStateAndHoldsNobodyBack(t *testing.T) {
	records := &store{}
	c := connect(t, serve(t, deps(t, records)))
	const changes = 5_000
	padding := strings.Repeat("x", 10_000) // together far more than flow control lets through
	got := 0
	done := errors.New("latest seen")
	err := c.Watch(t.Context(), manifest.KindServer, "", func(e Event) error {
		if e.Type == Synced {
			for i := 1; i <= changes; i++ {
				rec := server("db")
				rec.Metadata.Generation, rec.Status.Message = int64(i), padding
				records.send(Event{Put, rec})
			}
			require.Eventually(t, func() bool { // while this reader stands still
				records.mu.Lock()
				defer records.mu.Unlock()
				return len(records.watchers[0]) == 0
			}, soon, time.Millisecond)
			return nil
		}
		got++
		if e.Record.Metadata.Generation == changes {
			return done
		}
		return nil
	})
	require.ErrorIs(t, err, done)
	require.Less(t, got, changes, "states in between were left out")
}

func TestAWatchEndsWithItsContextAndWithTheGateway(t *testing.T) {
	records := &store{}
	dir, err := os.MkdirTemp("", "gw")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	cfg := config.Gateway{Socket: filepath.Join(dir, "s")}
	stop := start(t, deps(t, records), cfg)
	c := connect(t, cfg)

	ctx, cancel := context.WithCancel(t.Context())
	require.ErrorIs(t, c.Watch(ctx, "", "", func(Event) error { cancel(); return nil }), context.Canceled)

	err = c.Watch(t.Context(), "", "", func(Event) error { go stop(); return nil })
	require.ErrorIs(t, err, errs.ErrUnavailable)
	require.ErrorContains(t, err, "burrow status")
}

func TestNobodyThereIsAnErrorThatSaysWhatToDo(t *testing.T) {
	dir := t.TempDir()
	_, err := Dial(t.Context(), config.Gateway{Socket: filepath.Join(dir, "none")})
	require.ErrorIs(t, err, errs.ErrUnavailable)
	require.EqualError(t, err, "gateway at "+filepath.Join(dir, "none")+": connect: unavailable: nobody listens there; is burrow up? burrow status")

	_, err = Dial(t.Context(), config.Gateway{})
	require.ErrorContains(t, err, "client.json")
}
