package addresses

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"burrow.dev/burrow/internal/addrspace"
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

// Nor does it matter when all that is free in the cursor's block is in quarantine: the next
// block is read with it.
func TestRoundTripsAreConstantBesideQuarantine(t *testing.T) {
	p := newProcess(t, devstacktest.Etcd(t), time.Hour)
	uid := p.settle(t, manifest.Subnet{CIDR: "10.16.0.0/16", Gateway: "10.16.0.1"})
	_, err := p.one(t.Context(), uid, "warm/eth/0")
	require.NoError(t, err)
	p.fill(t, uid, func(n int) bool { return n < 256 && n != 255 })
	_, err = p.one(t.Context(), uid, "leaver/eth/0")
	require.NoError(t, err)
	require.NoError(t, p.Release(t.Context(), uid, "leaver/"))
	_, err = p.store.Client().Put(t.Context(), keys{p.store, uid}.cursor(netip.MustParsePrefix("10.16.0.0/16")), hexAddr(netip.MustParseAddr("10.16.0.255")))
	require.NoError(t, err)
	p.awaitUnlocked(t, uid)
	before := p.trips.Load()
	got, err := p.one(t.Context(), uid, "next/eth/0")
	require.NoError(t, err)
	require.Equal(t, "10.16.1.0/16", got.String())
	p.awaitUnlocked(t, uid)
	require.LessOrEqual(t, p.trips.Load()-before, int64(6))
}

// Nor does it matter what is asked for: an address by name, a server's several at once, or
// any of a network with reservations.
func TestRoundTripsOfStaticsBatchesAndReservedNetworks(t *testing.T) {
	const most = 6
	p := newProcess(t, devstacktest.Etcd(t), none)
	uid := p.settle(t, manifest.Subnet{CIDR: "10.16.0.0/16", Gateway: "10.16.0.1", Reserved: []string{"10.16.3.0-10.16.4.255"}}, manifest.Subnet{CIDR: "fd00::/64", Gateway: "fd00::1"})
	_, err := p.one(t.Context(), uid, "warm/eth/0") // makes the process's session
	require.NoError(t, err)
	for i := range 100 {
		require.NoError(t, p.Reserve(t.Context(), uid, span(fmt.Sprintf("10.16.%d.7-10.16.%d.9", 10+i, 10+i)), alice))
	}
	holes := rand.New(rand.NewPCG(3, 4))
	p.fill(t, uid, func(n int) bool {
		third, fourth := n>>8, n&0xff
		reserved := third == 3 || third == 4 || (third >= 10 && third < 110 && fourth >= 7 && fourth <= 9)
		return !reserved && holes.IntN(100) != 0
	})
	trips := func(wants ...addrspace.Want) (int64, error) {
		before := p.trips.Load()
		_, err := p.Allocate(t.Context(), uid, wants)
		p.awaitUnlocked(t, uid)
		return p.trips.Load() - before, err
	}
	statics := 0
	for third := 200; statics < 5; third++ {
		a := netip.AddrFrom4([4]byte{10, 16, byte(third), byte(third)})
		n, err := trips(addrspace.Want{Owner: fmt.Sprintf("static%d/eth/0", third), Static: a})
		require.LessOrEqual(t, n, int64(most), "static %s", a)
		var taken *addrspace.TakenError
		if err != nil && !errors.As(err, &taken) {
			require.NoError(t, err)
		}
		statics++
	}
	for i := range 5 {
		n, err := trips(addrspace.Want{Owner: fmt.Sprintf("s%d/eth/0", i)})
		require.NoError(t, err)
		require.LessOrEqual(t, n, int64(most), "beside reservations")
		var batch []addrspace.Want
		for slot := range 12 {
			batch = append(batch, addrspace.Want{Owner: fmt.Sprintf("b%d/eth/%d", i, slot), Subnet: slot % 2})
		}
		n, err = trips(batch...)
		require.NoError(t, err)
		require.LessOrEqual(t, n, int64(most), "a batch of 12 on two subnets")
	}
	n, err := trips(addrspace.Want{Owner: "refused/eth/0", Static: netip.MustParseAddr("10.16.11.8")})
	require.ErrorIs(t, err, errs.ErrInvalid)
	require.LessOrEqual(t, n, int64(most), "reserved")
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
				ops = append(ops, clientv3.OpPut(key, `{"owner":"full/eth/0"}`))
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
