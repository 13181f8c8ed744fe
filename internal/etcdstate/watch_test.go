package etcdstate

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"burrow.dev/burrow/internal/devstacktest"
	"burrow.dev/burrow/manifest"
)

// next gives the next event as "Put db 3".
func next(t *testing.T, events <-chan Event) string {
	t.Helper()
	select {
	case e, ok := <-events:
		require.True(t, ok, "the watch ended")
		if e.Type == Synced {
			return string(Synced)
		}
		return fmt.Sprintf("%s %s %d", e.Type, e.Record.Metadata.Name, e.Record.Metadata.Generation)
	case <-time.After(patience):
		require.FailNow(t, "no event")
		return ""
	}
}

func generation(t *testing.T, s *Store, name string, n int64) {
	t.Helper()
	_, err := s.Update(t.Context(), manifest.KindServer, name, func(r *manifest.Record) error {
		r.Metadata.Generation = n
		return nil
	})
	require.NoError(t, err)
}

func create(t *testing.T, s *Store, name string) {
	t.Helper()
	_, err := s.Create(t.Context(), server(name, name))
	require.NoError(t, err)
}

func TestWatchSendsWhatIsThereThenSyncedThenChanges(t *testing.T) {
	s := newTestStore(t)
	create(t, s, "a")
	create(t, s, "b")
	ctx, cancel := context.WithCancel(t.Context())
	events, err := s.Watch(ctx, manifest.KindServer)
	require.NoError(t, err)
	require.Equal(t, "Put a 0", next(t, events))
	require.Equal(t, "Put b 0", next(t, events))
	require.Equal(t, "Synced", next(t, events))
	generation(t, s, "a", 1)
	require.Equal(t, "Put a 1", next(t, events))
	require.NoError(t, s.Delete(t.Context(), manifest.KindServer, "a", "a"))
	require.Equal(t, "Delete a 1", next(t, events), "with the last record seen")
	create(t, s, "a")
	require.Equal(t, "Put a 0", next(t, events))
	cancel()
	for range events { //nolint:revive // it must close
	}
}

func TestWatchOfAllKinds(t *testing.T) {
	s := newTestStore(t)
	create(t, s, "a")
	events, err := s.Watch(t.Context(), "")
	require.NoError(t, err)
	require.Equal(t, "Put a 0", next(t, events))
	require.Equal(t, "Synced", next(t, events))
	rec := server("v", "v")
	rec.Kind = manifest.KindVolume
	_, err = s.Create(t.Context(), rec)
	require.NoError(t, err)
	require.Equal(t, "Put v 0", next(t, events))
}

func TestWatchGoesOnAfterALostConnection(t *testing.T) {
	t.Parallel()
	endpoint := devstacktest.Etcd(t)
	direct, line := openStore(t, endpoint, Options{}), newCable(t, endpoint)
	create(t, direct, "a")
	create(t, direct, "b")
	events, err := openStore(t, line.endpoint(), Options{}).Watch(t.Context(), manifest.KindServer)
	require.NoError(t, err)
	for range 3 {
		next(t, events)
	}
	line.setCut(true)
	generation(t, direct, "a", 1)
	require.NoError(t, direct.Delete(t.Context(), manifest.KindServer, "b", "b"))
	line.setCut(false)
	require.Equal(t, "Put a 1", next(t, events))
	require.Equal(t, "Delete b 0", next(t, events))
	generation(t, direct, "a", 2)
	require.Equal(t, "Put a 2", next(t, events))
}

func TestWatchSurvivesACompactionItSlept(t *testing.T) {
	t.Parallel()
	endpoint := devstacktest.Etcd(t)
	direct, line := openStore(t, endpoint, Options{}), newCable(t, endpoint)
	for _, name := range []string{"changed", "gone", "same"} {
		create(t, direct, name)
	}
	events, err := openStore(t, line.endpoint(), Options{}).Watch(t.Context(), manifest.KindServer)
	require.NoError(t, err)
	for range 4 {
		next(t, events)
	}
	line.setCut(true)
	for n := range int64(5) {
		generation(t, direct, "changed", n+1)
	}
	require.NoError(t, direct.Delete(t.Context(), manifest.KindServer, "gone", "gone"))
	create(t, direct, "new")
	resp, err := direct.client.Get(t.Context(), "x")
	require.NoError(t, err)
	_, err = direct.client.Compact(t.Context(), resp.Header.Revision)
	require.NoError(t, err)
	line.setCut(false)
	require.Equal(t, "Put changed 5", next(t, events))
	require.Equal(t, "Put new 0", next(t, events))
	require.Equal(t, "Delete gone 0", next(t, events))
	generation(t, direct, "same", 1)
	require.Equal(t, "Put same 1", next(t, events), "what did not change is not sent again")
}

func TestWatchSurvivesARestartOfEtcd(t *testing.T) {
	t.Parallel()
	member := devstacktest.StartEtcd(t)
	s := openStore(t, member.EtcdEndpoint, Options{})
	create(t, s, "a")
	events, err := s.Watch(t.Context(), manifest.KindServer)
	require.NoError(t, err)
	next(t, events)
	next(t, events)
	require.NoError(t, member.Kill())
	member.Restart()
	require.Eventually(t, func() bool {
		_, err := s.Update(t.Context(), manifest.KindServer, "a", func(r *manifest.Record) error { r.Metadata.Generation = 7; return nil })
		return err == nil
	}, patience, 50*time.Millisecond)
	require.Equal(t, "Put a 7", next(t, events))
}
