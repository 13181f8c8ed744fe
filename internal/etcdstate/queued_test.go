package etcdstate

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"

	"burrow.dev/burrow/internal/devstacktest"
)

// requests counts a store's transactions.
type requests struct{ open, failed atomic.Int64 }

func (r *requests) count(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	if strings.HasSuffix(method, "/Txn") {
		r.open.Add(1)
		defer r.open.Add(-1)
	}
	err := invoke(ctx, method, req, reply, cc, opts...)
	if err != nil {
		r.failed.Add(1)
	}
	return err
}

// The leader dies, and another member, so that every waiter's watch breaks and it asks who
// is in front; then the member that it asks. One that gave up its place would abandon its
// session, and with it the places of all others of its process; their dead keys would
// block everybody for a lease.
func TestWaitersKeepTheirPlacesThroughAnElection(t *testing.T) {
	t.Parallel()
	cluster := devstacktest.StartEtcdCluster(t, 3)
	ttl := Options{LockTTL: faultPatience}
	names := []string{"x", "y"}
	holder := openCluster(t, cluster.Config(), ttl)
	var held []*Held
	for _, name := range names {
		h, err := holder.Lock(within(t), name)
		require.NoError(t, err)
		held = append(held, h)
	}
	const waiters = 2
	var counted [waiters]requests
	arrivals := make(chan error, waiters*len(names))
	for i := range waiters {
		opts := ttl
		opts.DialOptions = []grpc.DialOption{grpc.WithChainUnaryInterceptor(counted[i].count)}
		s := openCluster(t, cluster.Config(), opts)
		for _, name := range names {
			go func() {
				h, err := s.Lock(within(t), name)
				if err == nil {
					h.Unlock(t.Context())
				}
				arrivals <- err
			}()
		}
	}
	places := func() map[string]int64 {
		resp, err := holder.client.Get(t.Context(), holder.Key("locks", ""), clientv3.WithPrefix())
		if err != nil {
			return nil
		}
		out := map[string]int64{}
		for _, kv := range resp.Kvs {
			out[string(kv.Key)] = kv.CreateRevision
		}
		return out
	}
	var before map[string]int64
	require.Eventually(t, func() bool {
		before = places()
		return len(before) == (1+waiters)*len(names)
	}, faultPatience, 10*time.Millisecond)

	leader := cluster.Leader(within(t))
	another := (leader + 1) % 3
	cluster.Kill(leader, another)
	all := func(met func(*requests) bool) func() bool {
		return func() bool {
			for i := range counted {
				if !met(&counted[i]) {
					return false
				}
			}
			return true
		}
	}
	perStore := int64(len(names))
	require.Eventually(t, all(func(r *requests) bool { return r.open.Load() == perStore }), faultPatience, time.Millisecond)
	cluster.Kill((leader + 2) % 3)
	// Of each: the question, and what would be the retreat.
	require.Eventually(t, all(func(r *requests) bool { return r.failed.Load() >= 2*perStore }), faultPatience, time.Millisecond)
	cluster.Restart(0, 1, 2)
	cluster.AwaitHealthy(within(t))
	require.Equal(t, before, places(), "nobody has left and come again")
	require.Empty(t, arrivals)
	for _, h := range held {
		require.Eventually(t, func() bool {
			_, err := holder.client.Txn(t.Context()).If(h.IsOwner()).Then(h.GiveBack()).Commit()
			return err == nil
		}, faultPatience, 10*time.Millisecond)
		h.GivenBack()
		h.Unlock(t.Context())
	}
	for range waiters * len(names) {
		require.NoError(t, <-arrivals)
	}
}
