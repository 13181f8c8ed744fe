package addresses

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"burrow.dev/burrow/internal/addrspace"
	"burrow.dev/burrow/internal/devstacktest"
	"burrow.dev/burrow/internal/etcdstate"
	"burrow.dev/burrow/manifest"
)

const (
	// benchProcesses is how many worker processes there are at most: each has a store and
	// an allocator, and its callers share them.
	benchProcesses = 4
	// benchRoom is how many addresses are given back at a time, so that a network that is
	// nearly full stays so.
	benchRoom = 500
	// bareSamples is how many bare transactions are measured before and after, one after
	// the other, and bareTogether how many by all callers at once.
	bareSamples  = 40
	bareTogether = 200
)

// BenchmarkAllocate measures allocations against an etcd that syncs to the disk, beside
// one bare transaction (compare absent, put) on the same cluster in the same run:
//
//	p50-ms p99-ms allocs/s   what a caller waits, what all callers get together
//	bare-ms                  the bare transaction's p50
//	p50/bare                 the ratio; machines differ, this should not
//	bare/s                   bare transactions of as many callers together
func BenchmarkAllocate(b *testing.B) {
	for _, members := range []int{1, 3} {
		b.Run(fmt.Sprintf("members=%d", members), func(b *testing.B) {
			bench := newBench(b, members)
			empty := []string{bench.network(b)}
			full := []string{bench.network(b)}
			holes := rand.New(rand.NewPCG(1, 2)) // the same holes in every run
			bench.processes[0].fill(b, full[0], func(int) bool { return holes.IntN(100) != 0 })
			for _, workers := range []int{1, 16, 64} {
				b.Run(fmt.Sprintf("empty/workers=%d", workers), func(b *testing.B) { bench.run(b, empty, workers) })
				b.Run(fmt.Sprintf("99%%full/workers=%d", workers), func(b *testing.B) { bench.run(b, full, workers) })
			}
			var several []string
			for range 16 {
				several = append(several, bench.network(b))
			}
			b.Run("networks=16/workers=16", func(b *testing.B) { bench.run(b, several, 16) })
			b.Run("networks=16/workers=64", func(b *testing.B) { bench.run(b, several, 64) })
		})
	}
}

// bench is some worker processes on one etcd.
type bench struct {
	processes []process
	owners    atomic.Int64
}

func newBench(b *testing.B, members int) *bench {
	b.Helper()
	cluster := devstacktest.StartEtcdCluster(b, members, devstacktest.ClusterOptions{Fsync: true})
	out := &bench{}
	for range benchProcesses {
		store, err := etcdstate.Open(cluster.Config(), etcdstate.Options{})
		require.NoError(b, err)
		a := New(store, Options{Quarantine: none})
		b.Cleanup(func() { a.Close(); require.NoError(b, store.Close()) })
		out.processes = append(out.processes, process{Allocator: a, store: store})
	}
	return out
}

func (x *bench) network(b *testing.B) string {
	b.Helper()
	uid := uuid.NewString()
	_, err := x.processes[0].Settle(b.Context(), uid, uid, func([]addrspace.Entry) (manifest.NetworkStatus, error) {
		return manifest.NetworkStatus{Subnets: []manifest.Subnet{{CIDR: "10.16.0.0/16", Gateway: "10.16.0.1"}}}, nil
	})
	require.NoError(b, err)
	return uid
}

// run makes b.N allocations by some callers at once, spread over networks and processes.
func (x *bench) run(b *testing.B, networks []string, workers int) {
	bare, rate := x.bare(b), x.bareRate(b, workers)
	var all []time.Duration
	var spent time.Duration
	for left := b.N; left > 0; {
		n := min(left, benchRoom)
		b.StartTimer()
		begun := time.Now()
		all = append(all, x.allocate(b, networks, workers, n)...)
		spent += time.Since(begun)
		b.StopTimer()
		for _, uid := range networks {
			require.NoError(b, x.processes[0].Release(b.Context(), uid, "bench-"))
		}
		left -= n
	}
	bare, rate = append(bare, x.bare(b)...), (rate+x.bareRate(b, workers))/2
	slices.Sort(all)
	slices.Sort(bare)
	p50, plain := all[len(all)/2], bare[len(bare)/2]
	b.ReportMetric(float64(b.N)/spent.Seconds(), "allocs/s")
	b.ReportMetric(float64(p50.Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(all[len(all)*99/100].Microseconds())/1000, "p99-ms")
	b.ReportMetric(float64(plain.Microseconds())/1000, "bare-ms")
	b.ReportMetric(float64(p50)/float64(plain), "p50/bare")
	b.ReportMetric(rate, "bare/s")
	b.ReportMetric(0, "ns/op") // the metrics above say it better
}

// allocate makes n allocations and gives how long each took.
func (x *bench) allocate(b *testing.B, networks []string, workers, n int) []time.Duration {
	took := make([]time.Duration, n)
	var next atomic.Int64
	var callers sync.WaitGroup
	for w := range workers {
		callers.Go(func() {
			p, uid := x.processes[w%len(x.processes)], networks[w%len(networks)]
			for {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				owner := fmt.Sprintf("bench-%d/eth/0", x.owners.Add(1))
				begun := time.Now()
				if _, err := p.Allocate(context.WithoutCancel(b.Context()), uid, []addrspace.Want{{Owner: owner}}); err != nil {
					b.Error(err)
				}
				took[i] = time.Since(begun)
			}
		})
	}
	callers.Wait()
	return took
}

// bare measures the cheapest safe write, one after the other.
func (x *bench) bare(b *testing.B) []time.Duration {
	b.Helper()
	b.StopTimer()
	took := make([]time.Duration, bareSamples)
	for i := range took {
		begun := time.Now()
		require.NoError(b, x.write(b.Context(), x.processes[0]))
		took[i] = time.Since(begun)
	}
	return took
}

// bareRate measures how many of them some callers get together in a second.
func (x *bench) bareRate(b *testing.B, workers int) float64 {
	b.Helper()
	b.StopTimer()
	var left atomic.Int64
	left.Store(bareTogether)
	var callers sync.WaitGroup
	begun := time.Now()
	for w := range workers {
		callers.Go(func() {
			for left.Add(-1) >= 0 {
				if err := x.write(b.Context(), x.processes[w%len(x.processes)]); err != nil {
					b.Error(err)
				}
			}
		})
	}
	callers.Wait()
	return bareTogether / time.Since(begun).Seconds()
}

// write compares that a key is absent, and puts it.
func (x *bench) write(ctx context.Context, p process) error {
	key := fmt.Sprintf("bare/%d", x.owners.Add(1))
	_, err := p.store.Client().Txn(ctx).If(etcdstate.Absent(key)).Then(clientv3.OpPut(key, "x")).Commit()
	return err
}
