package addresses

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"burrow.dev/burrow/internal/devstacktest"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/etcdstate"
	"burrow.dev/burrow/manifest"
)

// Six round trips, whatever the fill: the owner, the lock, the pool, a block, the
// transaction, the unlocking.
func TestRoundTripsAreConstant(t *testing.T) {
	const most = 6
	p := newProcess(t, devstacktest.Etcd(t), none)
	trips := func(uid, owner string) int64 {
		before := p.trips.Load()
		_, err := p.one(t.Context(), uid, owner)
		require.NoError(t, err)
		p.awaitUnlocked(t, uid) // callers do not wait for that
		return p.trips.Load() - before
	}
	small := p.settle(t, manifest.Subnet{CIDR: "10.0.0.0/24", Gateway: "10.0.0.1"})
	trips(small, "warm/eth/0") // makes the process's session
	for i := range 252 {
		require.LessOrEqual(t, trips(small, fmt.Sprintf("s%d/eth/0", i)), int64(most), "address %d of a /24", i)
	}
	_, err := p.one(t.Context(), small, "late/eth/0")
	require.ErrorIs(t, err, errs.ErrNoSpace)

	big := p.settle(t, manifest.Subnet{CIDR: "10.16.0.0/16", Gateway: "10.16.0.1"})
	require.LessOrEqual(t, trips(big, "first/eth/0"), int64(most), "first of a /16")
	p.fill(t, big, func(n int) bool { return n < 1<<15 })
	require.LessOrEqual(t, trips(big, "middle/eth/0"), int64(most), "middle of a /16")
	holes := rand.New(rand.NewPCG(1, 2)) // the same holes in every run
	p.fill(t, big, func(int) bool { return holes.IntN(100) != 0 })
	for i := range 20 {
		require.LessOrEqual(t, trips(big, fmt.Sprintf("hole%d/eth/0", i)), int64(most), "a /16 that is 99 %% full with random holes")
	}
	p.fill(t, big, func(int) bool { return true })
	_, err = p.one(t.Context(), big, "late/eth/0")
	require.ErrorIs(t, err, errs.ErrNoSpace)
	require.NoError(t, p.Release(t.Context(), big, "hole7/"))
	p.awaitUnlocked(t, big)
	require.LessOrEqual(t, trips(big, "last/eth/0"), int64(most), "last of a /16")
	_, err = p.one(t.Context(), big, "late/eth/0")
	require.ErrorIs(t, err, errs.ErrNoSpace)
}

// fill takes those addresses of a /16 that in chooses and nobody has, as earlier
// allocations would have.
func (p process) fill(t testing.TB, uid string, in func(n int) bool) {
	t.Helper()
	k := keys{p.store, uid}
	client := p.store.Client()
	taken, err := client.Get(t.Context(), k.addrs(), clientv3.WithPrefix(), clientv3.WithKeysOnly())
	require.NoError(t, err)
	busy := map[string]bool{}
	for _, kv := range taken.Kvs {
		busy[string(kv.Key)] = true
	}
	gateway := netip.MustParseAddr("10.16.0.1")
	block := netip.MustParsePrefix("10.16.0.0/24")
	for n := 0; n < 1<<16; n += 256 {
		var ops []clientv3.Op
		count := 0
		a := block.Addr()
		for i := range 256 {
			usable := a != gateway && n+i != 0 && n+i != 1<<16-1
			key := k.addr(a)
			if usable && !busy[key] && in(n+i) {
				ops = append(ops, clientv3.OpPut(key, "{}"))
				busy[key] = true
			}
			if usable && busy[key] {
				count++
			}
			a = a.Next()
		}
		ops = append(ops, clientv3.OpPut(k.count(block), fmt.Sprint(count)))
		for chunk := range slices.Chunk(ops, etcdstate.MaxOps) {
			_, err := client.Txn(t.Context()).Then(chunk...).Commit()
			require.NoError(t, err)
		}
		block = netip.PrefixFrom(a, 24)
	}
}
