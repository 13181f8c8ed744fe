package etcdstate

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"

	"burrow.dev/burrow/internal/devstacktest"
)

// BenchmarkLockHandedOn measures how long a lock takes from one process to the other,
// beside one bare transaction (compare absent, put) in the same run. With the watch of
// etcd's own mutex it was 100 ms, whatever the disk.
func BenchmarkLockHandedOn(b *testing.B) {
	cluster := devstacktest.StartEtcdCluster(b, 1, devstacktest.ClusterOptions{Fsync: true})
	var stores []*Store
	for range 2 {
		s, err := Open(cluster.Config(), Options{})
		require.NoError(b, err)
		b.Cleanup(func() { require.NoError(b, s.Close()) })
		stores = append(stores, s)
	}
	var bare, handed time.Duration
	for b.Loop() {
		begun := time.Now()
		_, err := stores[0].client.Txn(b.Context()).If(Absent("bare")).Then(clientv3.OpPut("bare", "x")).Commit()
		require.NoError(b, err)
		bare += time.Since(begun)
		_, err = stores[0].client.Delete(b.Context(), "bare")
		require.NoError(b, err)

		first, err := stores[0].Lock(b.Context(), "x")
		require.NoError(b, err)
		var second *Held
		var waiting errgroup.Group
		waiting.Go(func() (err error) {
			second, err = stores[1].Lock(b.Context(), "x")
			return err
		})
		for queued := 0; queued < 2; {
			keys, err := stores[0].KeysBelow(b.Context(), "locks/x")
			require.NoError(b, err)
			queued = len(keys)
		}
		begun = time.Now()
		first.Unlock(b.Context())
		require.NoError(b, waiting.Wait())
		handed += time.Since(begun)
		second.Unlock(b.Context())
	}
	b.ReportMetric(float64(handed.Microseconds())/1000/float64(b.N), "handed-ms")
	b.ReportMetric(float64(bare.Microseconds())/1000/float64(b.N), "bare-ms")
	b.ReportMetric(float64(handed)/float64(bare), "handed/bare")
	b.ReportMetric(0, "ns/op") // the metrics above say it better
}
