package etcdstate

import (
	"context"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"burrow.dev/burrow/internal/config"
	"burrow.dev/burrow/internal/devstacktest"
	"burrow.dev/burrow/internal/errs"
)

// faultPatience bounds what follows an election or a member's start.
const faultPatience = time.Minute

// long chooses the tests' long forms.
func long() bool { return os.Getenv("BURROW_FAULTS") != "" }

// rounds is how often the faults are gone through.
func rounds() int {
	if long() {
		return 8
	}
	return 1
}

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), faultPatience)
	t.Cleanup(cancel)
	return ctx
}

func openCluster(t *testing.T, cfg config.Etcd, opts Options) *Store {
	t.Helper()
	store, err := Open(cfg, opts)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	return store
}

// crew does the same work again and again, in several goroutines, while faults happen.
type crew struct {
	t    *testing.T
	stop context.CancelFunc
	wg   sync.WaitGroup

	done   atomic.Int64 // pieces of work that succeeded
	failed atomic.Int64 // that failed, though it may have taken effect

	mu       sync.Mutex
	terminal error
}

// employ starts n goroutines. Work that fails is one of the transient errors, or the test fails.
func employ(t *testing.T, n int, work func(ctx context.Context, worker int) error) *crew {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	c := &crew{t: t, stop: cancel}
	for i := range n {
		c.wg.Go(func() {
			for ctx.Err() == nil {
				err := work(context.WithoutCancel(ctx), i) // what was begun is brought to its end
				if err == nil {
					c.done.Add(1)
					continue
				}
				c.failed.Add(1)
				if errs.ClassOf(err) != errs.Transient {
					c.mu.Lock()
					c.terminal = err
					c.mu.Unlock()
					return
				}
			}
		})
	}
	t.Cleanup(c.finish)
	return c
}

// progress waits until every worker, on average, has done some work from now on.
func (c *crew) progress() {
	c.t.Helper()
	const pieces = 20
	goal := c.done.Load() + pieces
	require.Eventually(c.t, func() bool { return c.done.Load() >= goal }, faultPatience, 10*time.Millisecond)
}

// failure waits until some work has failed from now on.
func (c *crew) failure() {
	c.t.Helper()
	goal := c.failed.Load() + 1
	require.Eventually(c.t, func() bool { return c.failed.Load() >= goal }, faultPatience, 10*time.Millisecond)
}

func (c *crew) finish() {
	c.t.Helper()
	c.stop()
	c.wg.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	require.NoError(c.t, c.terminal, "nobody gets a terminal error for a fault of etcd")
}

// goThroughFaults makes each fault of a cluster of three, and mends it, while the crew works.
func goThroughFaults(t *testing.T, cluster *devstacktest.EtcdCluster, c *crew) {
	t.Helper()
	c.progress()
	for range rounds() {
		leader := cluster.Leader(within(t))
		cluster.Kill(leader)
		c.progress()
		cluster.Restart(leader)

		follower := (cluster.Leader(within(t)) + 1) % 3
		cluster.Kill(follower)
		c.progress()
		cluster.Restart(follower)

		if long() { // it takes keepaliveTime until a client leaves a member that hangs
			leader = cluster.Leader(within(t))
			cluster.Stop(leader)
			c.progress()
			cluster.Continue(leader)
		}

		first := cluster.Leader(within(t))
		second := (first + 1) % 3
		cluster.Kill(first, second)
		c.failure()
		cluster.Restart(first, second)
		c.progress()
	}
	c.finish()
	cluster.AwaitHealthy(within(t))
}
