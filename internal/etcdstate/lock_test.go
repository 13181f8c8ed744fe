package etcdstate

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"

	"burrow.dev/burrow/internal/devstacktest"
)

func TestGoroutinesOfOneProcessExcludeEachOther(t *testing.T) {
	endpoint := devstacktest.Etcd(t)
	stores := []*Store{openStore(t, endpoint, Options{}), openStore(t, endpoint, Options{})}
	inside := make(chan struct{}, 1) // full while somebody is inside
	var group errgroup.Group
	for n := range 20 {
		group.Go(func() error {
			held, err := stores[n%2].Lock(t.Context(), "x")
			if err != nil {
				return err
			}
			defer held.Unlock(t.Context())
			select {
			case inside <- struct{}{}:
			default:
				return fmt.Errorf("two inside")
			}
			_, err = stores[n%2].client.Get(t.Context(), "y")
			<-inside
			return err
		})
	}
	require.NoError(t, group.Wait())
}

func TestHolderStoppedPastItsLeaseCannotWrite(t *testing.T) {
	t.Parallel()
	endpoint := devstacktest.Etcd(t)
	line := newCable(t, endpoint)
	opts := Options{LockTTL: 2 * time.Second}
	stopped, other := openStore(t, line.endpoint(), opts), openStore(t, endpoint, opts)
	old, err := stopped.Lock(t.Context(), "x")
	require.NoError(t, err)
	line.setCut(true)
	begun := time.Now()
	held, err := other.Lock(t.Context(), "x")
	require.NoError(t, err)
	require.Less(t, time.Since(begun), opts.LockTTL+2*time.Second, "delayed by no more than the lease and 2 s")
	line.setCut(false)
	write := func(s *Store, h *Held, value string) bool {
		var ok bool
		require.Eventually(t, func() bool {
			resp, err := s.client.Txn(t.Context()).If(h.IsOwner()).Then(clientv3.OpPut("z", value)).Commit()
			ok = err == nil && resp.Succeeded
			return err == nil
		}, patience, 20*time.Millisecond)
		return ok
	}
	require.False(t, write(stopped, old, "old"))
	require.True(t, write(other, held, "new"))
	old.Unlock(t.Context())
	require.True(t, write(other, held, "new"), "the old holder's unlocking frees nothing of the new one's")
	held.Unlock(t.Context())
	again, err := stopped.Lock(t.Context(), "x")
	require.NoError(t, err, "with a new session")
	again.Unlock(t.Context())
}

func TestWaiterThatGivesUpLeavesTheQueue(t *testing.T) {
	endpoint := devstacktest.Etcd(t)
	a, b := openStore(t, endpoint, Options{}), openStore(t, endpoint, Options{})
	held, err := a.Lock(t.Context(), "x")
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err = b.Lock(ctx, "x")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	keys, err := a.KeysBelow(t.Context(), "locks/x")
	require.NoError(t, err)
	require.Len(t, keys, 1, "the holder's")
	held.Unlock(t.Context())
}

func TestWaiterBehindOneWhoGivesUpStillWaitsForTheHolder(t *testing.T) {
	endpoint := devstacktest.Etcd(t)
	a, b, c := openStore(t, endpoint, Options{}), openStore(t, endpoint, Options{}), openStore(t, endpoint, Options{})
	queue := func(n int) {
		t.Helper()
		require.Eventually(t, func() bool {
			keys, err := a.KeysBelow(t.Context(), "locks/x")
			return err == nil && len(keys) == n
		}, patience, 10*time.Millisecond)
	}
	held, err := a.Lock(t.Context(), "x")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	gaveUp, got := make(chan error, 1), make(chan *Held, 1)
	go func() {
		_, err := b.Lock(ctx, "x")
		gaveUp <- err
	}()
	queue(2)
	go func() {
		third, err := c.Lock(t.Context(), "x")
		if err != nil {
			t.Error(err)
		}
		got <- third
	}()
	queue(3)
	cancel()
	require.ErrorIs(t, <-gaveUp, context.Canceled)
	queue(2)
	for range 20 { // it has seen that one is gone, and may only wait for the other
		resp, err := a.client.Txn(t.Context()).If(held.IsOwner()).Then(clientv3.OpPut("z", "a")).Commit()
		require.NoError(t, err)
		require.True(t, resp.Succeeded)
		require.Empty(t, got)
	}
	held.Unlock(t.Context())
	third := <-got
	require.NotNil(t, third)
	third.Unlock(t.Context())
}
