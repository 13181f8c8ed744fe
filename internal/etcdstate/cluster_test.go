package etcdstate

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"burrow.dev/burrow/internal/config"
	"burrow.dev/burrow/internal/devstacktest"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
)

// Compare-and-swap and watch: the generation counts updates, so a lost update is a
// generation written twice, and a lost event is one that is missing. When the answer to an
// update is lost, the update is made again: that is another generation.
func TestNoUpdateAndNoEventIsLostOrDoubledWhateverMemberDies(t *testing.T) {
	t.Parallel()
	cluster := devstacktest.StartEtcdCluster(t, 3)
	stores := []*Store{openCluster(t, cluster.Config(), Options{}), openCluster(t, cluster.Config(), Options{})}
	create(t, stores[0], "db")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	events, err := openCluster(t, cluster.Config(), Options{}).Watch(ctx, manifest.KindServer)
	require.NoError(t, err)
	require.Equal(t, "Put db 0", next(t, events))
	require.Equal(t, "Synced", next(t, events))
	var seen []int64
	var last atomic.Int64
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for e := range events {
			seen = append(seen, e.Record.Metadata.Generation)
			last.Store(e.Record.Metadata.Generation)
		}
	}()

	var asked atomic.Int64
	c := employ(t, 4, func(ctx context.Context, n int) error {
		_, err := stores[n%2].Update(ctx, manifest.KindServer, "db", func(r *manifest.Record) error {
			asked.Add(1)
			r.Metadata.Generation++
			return nil
		})
		return err
	})
	goThroughFaults(t, cluster, c)
	rec, err := stores[0].Get(within(t), manifest.KindServer, "db")
	require.NoError(t, err)
	t.Logf("%d updates, %d failed", c.done.Load(), c.failed.Load())
	require.GreaterOrEqual(t, rec.Metadata.Generation, c.done.Load(), "every acknowledged update is there")
	require.LessOrEqual(t, rec.Metadata.Generation, asked.Load(), "and none that nobody asked for")
	require.Eventually(t, func() bool { return last.Load() == rec.Metadata.Generation }, faultPatience, 10*time.Millisecond)
	cancel()
	<-ended
	require.Len(t, seen, int(rec.Metadata.Generation))
	for i, generation := range seen {
		require.Equal(t, int64(i+1), generation, "every change once, in order")
	}
}

// Each hold of the lock reads a number and writes the next one, comparing only that it
// still holds the lock: two holders at once would write one number twice. The client
// may repeat a write whose answer was lost, so each has a mark of its own.
func TestLockedWritesFollowEachOtherWhateverMemberDies(t *testing.T) {
	t.Parallel()
	cluster := devstacktest.StartEtcdCluster(t, 3)
	opts := Options{LockTTL: 2 * time.Second}
	stores := []*Store{openCluster(t, cluster.Config(), opts), openCluster(t, cluster.Config(), opts), openCluster(t, cluster.Config(), opts)}
	const counter = "counter"
	var marks atomic.Int64
	c := employ(t, 6, func(ctx context.Context, n int) error {
		s := stores[n%3]
		held, err := s.Lock(ctx, "x")
		if err != nil {
			return err
		}
		defer held.Unlock(ctx)
		got, err := s.client.Get(ctx, counter)
		if err != nil {
			return Translate(ctx, counter, "read", err)
		}
		number := int64(0)
		if len(got.Kvs) > 0 {
			if number, _, err = parseCount(got.Kvs[0].Value); err != nil {
				return err
			}
		}
		write := clientv3.OpPut(counter, fmt.Sprintf("%d %d", number+1, marks.Add(1)))
		resp, err := s.client.Txn(ctx).If(held.IsOwner()).Then(write).Commit()
		if err != nil {
			return Translate(ctx, counter, "write", err)
		}
		if !resp.Succeeded {
			return errs.NewTransient(counter, "write", errors.New("the lock was lost"))
		}
		return nil
	})
	goThroughFaults(t, cluster, c)
	t.Logf("%d holds, %d failed", c.done.Load(), c.failed.Load())
	ctx, cancel := context.WithCancel(within(t))
	defer cancel()
	now, err := stores[0].client.Get(ctx, counter)
	require.NoError(t, err)
	var number, mark int64
	for resp := range stores[0].client.Watch(ctx, counter, clientv3.WithRev(1)) {
		require.NoError(t, resp.Err())
		for _, e := range resp.Events {
			n, m, err := parseCount(e.Kv.Value)
			require.NoError(t, err)
			if m == mark {
				continue
			}
			require.Equal(t, number+1, n, "two holders wrote at once")
			number, mark = n, m
		}
		if resp.Events[len(resp.Events)-1].Kv.ModRevision >= now.Kvs[0].ModRevision {
			break
		}
	}
	require.GreaterOrEqual(t, number, c.done.Load(), "every acknowledged write is there")
}

// parseCount reads what a hold of the lock wrote: a number and the write's mark.
func parseCount(value []byte) (number, mark int64, err error) {
	_, err = fmt.Sscan(string(value), &number, &mark)
	return number, mark, err
}

// The watcher's only member sleeps while records change and etcd forgets how.
func TestWatchSurvivesACompactionWhileItsMemberWasDead(t *testing.T) {
	t.Parallel()
	cluster := devstacktest.StartEtcdCluster(t, 3)
	dead := (cluster.Leader(within(t)) + 1) % 3
	others := config.Etcd{}
	for i, endpoint := range cluster.Endpoints() {
		if i != dead {
			others.Endpoints = append(others.Endpoints, endpoint)
		}
	}
	direct := openCluster(t, others, Options{})
	for _, name := range []string{"changed", "gone", "same"} {
		create(t, direct, name)
	}
	events, err := openStore(t, cluster.Endpoints()[dead], Options{}).Watch(t.Context(), manifest.KindServer)
	require.NoError(t, err)
	for range 4 {
		next(t, events)
	}
	cluster.Kill(dead)
	for n := range int64(5) {
		generation(t, direct, "changed", n+1)
	}
	require.NoError(t, direct.Delete(t.Context(), manifest.KindServer, "gone", "gone"))
	create(t, direct, "new")
	resp, err := direct.client.Get(t.Context(), "x")
	require.NoError(t, err)
	_, err = direct.client.Compact(t.Context(), resp.Header.Revision)
	require.NoError(t, err)
	cluster.Restart(dead)
	require.Equal(t, "Put changed 5", next(t, events))
	require.Equal(t, "Put new 0", next(t, events))
	require.Equal(t, "Delete gone 0", next(t, events))
	generation(t, direct, "same", 1)
	require.Equal(t, "Put same 1", next(t, events), "what did not change is not sent again")
}
