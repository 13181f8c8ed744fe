package etcdstate

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"

	"burrow.dev/burrow/internal/devstacktest"
	"burrow.dev/burrow/manifest"
)

// values counts the values that a store's reads bring.
type values struct{ atomic.Int64 }

func (v *values) options() Options {
	return Options{DialOptions: []grpc.DialOption{grpc.WithChainUnaryInterceptor(
		func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			err := invoke(ctx, method, req, reply, cc, opts...)
			switch r := reply.(type) {
			case *etcdserverpb.RangeResponse:
				v.add(r)
			case *etcdserverpb.TxnResponse:
				for _, one := range r.Responses {
					if got := one.GetResponseRange(); got != nil {
						v.add(got)
					}
				}
			}
			return err
		})}}
}

func (v *values) add(r *etcdserverpb.RangeResponse) {
	for _, kv := range r.Kvs {
		if len(kv.Value) > 0 {
			v.Add(1)
		}
	}
}

// createMany makes servers s-000, s-001, …
func createMany(t *testing.T, s *Store, n int) {
	t.Helper()
	for from := 0; from < n; from += MaxOps {
		var ops []clientv3.Op
		for i := from; i < min(n, from+MaxOps); i++ {
			name := fmt.Sprintf("s-%03d", i)
			value, err := encodeRecord(server(name, name))
			require.NoError(t, err)
			ops = append(ops, clientv3.OpPut(s.Key("servers", name), value))
		}
		_, err := s.client.Txn(t.Context()).Then(ops...).Commit()
		require.NoError(t, err)
	}
}

func TestWatchOfASlowReaderHoldsAPageOfRecords(t *testing.T) {
	const n = 5 * MaxOps
	endpoint := devstacktest.Etcd(t)
	createMany(t, openStore(t, endpoint, Options{}), n)
	var read values
	s := openStore(t, endpoint, read.options())
	events, err := s.Watch(t.Context(), manifest.KindServer)
	require.NoError(t, err)
	for i := range n {
		require.Equal(t, fmt.Sprintf("Put s-%03d 0", i), next(t, events))
		require.LessOrEqual(t, read.Load(), int64(i+1+eventBuffer+2*MaxOps), "no more than the reader can be told soon")
	}
	require.Equal(t, "Synced", next(t, events))
	require.Equal(t, int64(n), read.Load())
}

// What the reader was not told yet is forgotten by etcd while it sleeps.
func TestWatchOfASlowReaderSurvivesACompaction(t *testing.T) {
	const n = 5 * MaxOps
	endpoint := devstacktest.Etcd(t)
	direct := openStore(t, endpoint, Options{})
	createMany(t, direct, n)
	events, err := openStore(t, endpoint, Options{}).Watch(t.Context(), manifest.KindServer)
	require.NoError(t, err)
	require.Equal(t, "Put s-000 0", next(t, events))
	last := fmt.Sprintf("s-%03d", n-1)
	generation(t, direct, last, 3)
	require.NoError(t, direct.Delete(t.Context(), manifest.KindServer, "s-000", "s-000"))
	resp, err := direct.client.Get(t.Context(), "x")
	require.NoError(t, err)
	_, err = direct.client.Compact(t.Context(), resp.Header.Revision)
	require.NoError(t, err)
	for i := 1; i < n-1; i++ {
		require.Equal(t, fmt.Sprintf("Put s-%03d 0", i), next(t, events))
	}
	require.Equal(t, "Put "+last+" 3", next(t, events))
	require.Equal(t, "Delete s-000 0", next(t, events))
	require.Equal(t, "Synced", next(t, events))
	generation(t, direct, last, 4)
	require.Equal(t, "Put "+last+" 4", next(t, events))
}

func TestWatchReadsOnlyWhatDiffersAfterACompaction(t *testing.T) {
	t.Parallel()
	const n = 2 * MaxOps
	endpoint := devstacktest.Etcd(t)
	direct, line := openStore(t, endpoint, Options{}), newCable(t, endpoint)
	createMany(t, direct, n)
	var read values
	events, err := openStore(t, line.endpoint(), read.options()).Watch(t.Context(), manifest.KindServer)
	require.NoError(t, err)
	for range n + 1 {
		next(t, events)
	}
	read.Store(0)
	line.setCut(true)
	generation(t, direct, "s-007", 1)
	generation(t, direct, "s-007", 2)
	resp, err := direct.client.Get(t.Context(), "x")
	require.NoError(t, err)
	_, err = direct.client.Compact(t.Context(), resp.Header.Revision)
	require.NoError(t, err)
	line.setCut(false)
	require.Equal(t, "Put s-007 2", next(t, events))
	require.Equal(t, int64(1), read.Load())
}
