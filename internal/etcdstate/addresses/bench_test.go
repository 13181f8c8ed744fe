package addresses

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"burrow.dev/burrow/internal/addrspace"
	"burrow.dev/burrow/internal/config"
	"burrow.dev/burrow/internal/devstacktest"
	"burrow.dev/burrow/internal/etcdstate"
	"burrow.dev/burrow/manifest"
)

// BenchmarkAllocate gives addresses of an empty /16 to one caller and to 16 of one
// process, beside the cost of one bare transaction.
func BenchmarkAllocate(b *testing.B) {
	store, err := etcdstate.Open(config.Etcd{Endpoints: []string{devstacktest.Etcd(b)}}, etcdstate.Options{})
	require.NoError(b, err)
	a := New(store, Options{Quarantine: none})
	defer func() { a.Close(); require.NoError(b, store.Close()) }()
	b.Run("bare transaction", func(b *testing.B) {
		for b.Loop() {
			_, err := store.Client().Txn(b.Context()).If(etcdstate.Absent("x")).Commit()
			require.NoError(b, err)
		}
	})
	for _, callers := range []int{1, 16} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			uid := fmt.Sprintf("net-%d-%d", callers, time.Now().UnixNano())
			_, err := a.Settle(b.Context(), uid, uid, func([]addrspace.Entry) (manifest.NetworkStatus, error) {
				return manifest.NetworkStatus{Subnets: []manifest.Subnet{{CIDR: "10.0.0.0/12", Gateway: "10.0.0.1"}}}, nil
			})
			require.NoError(b, err)
			var owners atomic.Int64
			run := func() {
				if _, err := a.Allocate(b.Context(), uid, []addrspace.Want{{Owner: fmt.Sprintf("s%d/eth/0", owners.Add(1))}}); err != nil {
					b.Error(err)
				}
			}
			if callers == 1 {
				for b.Loop() {
					run()
				}
				return
			}
			b.SetParallelism(callers / runtime.GOMAXPROCS(0))
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					run()
				}
			})
		})
	}
}
