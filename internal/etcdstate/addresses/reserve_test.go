package addresses

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go4.org/netipx"
	"golang.org/x/sync/errgroup"

	"burrow.dev/burrow/internal/addrspace"
	"burrow.dev/burrow/internal/devstacktest"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
)

func span(text string) netipx.IPRange {
	if !strings.Contains(text, "-") {
		text += "-" + text
	}
	return netipx.MustParseIPRange(text)
}

var alice = addrspace.Reservation{By: "alice", Comment: "printers"}

func (p process) static(ctx context.Context, uid, owner, addr string) error {
	_, err := p.Allocate(ctx, uid, []addrspace.Want{{Owner: owner, Static: netip.MustParseAddr(addr)}})
	return err
}

func TestReservedAddressesAreNeverHandedOut(t *testing.T) {
	p := newProcess(t, devstacktest.Etcd(t), none)
	uid := p.settle(t, manifest.Subnet{CIDR: "10.0.0.0/28", Gateway: "10.0.0.1"})
	require.NoError(t, p.Reserve(t.Context(), uid, span("10.0.0.0-10.0.0.11"), alice), "gateway and network address may be in it")
	got, err := p.one(t.Context(), uid, "a/eth/0")
	require.NoError(t, err)
	require.Equal(t, "10.0.0.12/28", got.String())
	err = p.static(t.Context(), uid, "b/eth/0", "10.0.0.5")
	require.ErrorIs(t, err, errs.ErrInvalid)
	require.ErrorContains(t, err, "reserved by alice: printers")
	for i := range 2 {
		_, err = p.one(t.Context(), uid, fmt.Sprintf("c%d/eth/0", i))
		require.NoError(t, err)
	}
	var full *addrspace.ExhaustedError
	_, err = p.one(t.Context(), uid, "late/eth/0")
	require.ErrorAs(t, err, &full)
	require.Equal(t, "3", full.Size)
	for range 2 {
		require.NoError(t, p.Unreserve(t.Context(), uid, span("10.0.0.4")))
	}
	require.NoError(t, p.static(t.Context(), uid, "b/eth/0", "10.0.0.4"))
	_, err = p.one(t.Context(), uid, "late/eth/0")
	require.ErrorIs(t, err, errs.ErrNoSpace, "the rest stays reserved")
	requireConsistent(t, p, uid)
}

func TestReserveRefusesWhatSomebodyHas(t *testing.T) {
	p := newProcess(t, devstacktest.Etcd(t), none)
	uid := p.settle(t, manifest.Subnet{CIDR: "10.0.0.0/24", Gateway: "10.0.0.1", Reserved: []string{"10.0.0.100-10.0.0.110"}}, manifest.Subnet{CIDR: "10.1.0.0/24", Gateway: "none"})
	require.NoError(t, p.static(t.Context(), uid, "s/eth/0", "10.0.0.20"))
	var taken *addrspace.TakenError
	require.ErrorAs(t, p.Reserve(t.Context(), uid, span("10.0.0.0-10.0.0.30"), alice), &taken)
	require.Equal(t, &addrspace.TakenError{Addr: netip.MustParseAddr("10.0.0.20"), Owner: "s/eth/0"}, taken)
	require.NoError(t, p.Reserve(t.Context(), uid, span("10.0.0.21-10.0.0.30"), alice))
	require.NoError(t, p.Reserve(t.Context(), uid, span("10.0.0.21-10.0.0.30"), alice), "again")
	var reserved *addrspace.ReservedError
	for _, r := range []string{"10.0.0.30", "10.0.0.25-10.0.0.40", "10.0.0.21-10.0.0.31"} {
		require.ErrorAs(t, p.Reserve(t.Context(), uid, span(r), alice), &reserved, r)
	}
	err := p.Reserve(t.Context(), uid, span("10.0.0.21-10.0.0.30"), addrspace.Reservation{By: "bob"})
	require.ErrorAs(t, err, &reserved)
	require.ErrorContains(t, err, "alice")
	for name, r := range map[string]string{
		"the gateway": "10.0.0.1", "the network's own": "10.0.0.0", "the broadcast": "10.0.0.255", "reserved by the network's manifest": "10.0.0.102-10.0.0.104",
		"in none": "10.2.0.1", "ends outside": "10.0.0.200-10.1.0.5",
	} {
		for what, err := range map[string]error{"reserve": p.Reserve(t.Context(), uid, span(r), alice), "unreserve": p.Unreserve(t.Context(), uid, span(r))} {
			require.ErrorIs(t, err, errs.ErrInvalid, what)
			require.ErrorContains(t, err, name, what)
		}
	}
	require.ErrorIs(t, p.Reserve(t.Context(), uid, netipx.IPRange{}, alice), errs.ErrInvalid)
	require.ErrorIs(t, p.Reserve(t.Context(), uid, span("10.0.0.50"), addrspace.Reservation{}), errs.ErrInvalid)
	require.ErrorIs(t, p.Reserve(t.Context(), uid, span("10.0.0.50"), addrspace.Reservation{By: strings.Repeat("x", 1000)}), errs.ErrInvalid)
	require.ErrorIs(t, p.Reserve(t.Context(), "absent", span("10.0.0.50"), alice), errs.ErrNotFound)
	require.ErrorIs(t, p.Unreserve(t.Context(), "absent", span("10.0.0.50")), errs.ErrNotFound)
}

func TestReservationsOfAnySizeAreStoredSmall(t *testing.T) {
	p := newProcess(t, devstacktest.Etcd(t), none)
	uid := p.settle(t, manifest.Subnet{CIDR: "10.0.0.0/8", Gateway: "10.0.0.1"}, manifest.Subnet{CIDR: "fd00::/64", Gateway: "fd00::1"})
	before := p.trips.Load()
	require.NoError(t, p.Reserve(t.Context(), uid, span("10.0.0.0-10.127.255.255"), alice))
	require.NoError(t, p.Reserve(t.Context(), uid, span("fd00::-fd00::7fff:ffff:ffff:ffff"), alice))
	require.LessOrEqual(t, p.trips.Load()-before, int64(9), "two times lock, read, write, unlock, and the session")
	got, err := p.Allocate(t.Context(), uid, []addrspace.Want{{Owner: "s/eth/0"}, {Owner: "s/eth/1", Subnet: 1}})
	require.NoError(t, err)
	require.Equal(t, "[10.128.0.0/8 fd00::8000:0:0:0/64]", fmt.Sprint(got))
	resp, err := p.store.Client().Get(t.Context(), keys{p.store, uid}.pool())
	require.NoError(t, err)
	require.Less(t, len(resp.Kvs[0].Value), 1000)
	err = nil
	for i := 0; err == nil; i++ {
		require.Less(t, i, 1000)
		err = p.Reserve(t.Context(), uid, span(fmt.Sprintf("10.200.%d.%d", i/100, i%100)), addrspace.Reservation{By: "alice", Comment: strings.Repeat("x", 300)})
	}
	require.ErrorIs(t, err, errs.ErrNoSpace)
	require.Equal(t, errs.Permanent, errs.ClassOf(err))
}

func TestUsageAndListing(t *testing.T) {
	p := newProcess(t, devstacktest.Etcd(t), time.Hour)
	uid := p.settle(t,
		manifest.Subnet{CIDR: "10.0.0.0/24", Gateway: "10.0.0.1", Range: "10.0.0.100-10.0.0.199", Reserved: []string{"10.0.0.190-10.0.0.199"}},
		manifest.Subnet{CIDR: "fd00::/64", Gateway: "fd00::1"})
	require.NoError(t, p.static(t.Context(), uid, "a/eth/0", "10.0.0.5"))
	for i := range 4 {
		_, err := p.Allocate(t.Context(), uid, []addrspace.Want{{Owner: fmt.Sprintf("s%d/eth/0", i)}, {Owner: fmt.Sprintf("s%d/eth/1", i), Subnet: 1}})
		require.NoError(t, err)
	}
	require.NoError(t, p.Release(t.Context(), uid, "s1/", "s2/"))
	require.NoError(t, p.Reserve(t.Context(), uid, span("10.0.0.102"), alice), "in quarantine, but nobody has it")
	require.NoError(t, p.Reserve(t.Context(), uid, span("10.0.0.110-10.0.0.119"), alice))
	usage, err := p.Usage(t.Context(), uid)
	require.NoError(t, err)
	require.Equal(t, addrspace.Usage{Subnets: []addrspace.SubnetUsage{
		{Subnet: netip.MustParsePrefix("10.0.0.0/24"), Size: 253, Used: 3, Reserved: 21, Quarantined: 1, Free: 228, Automatic: 76},
		{Subnet: netip.MustParsePrefix("fd00::/64"), Size: 1<<64 - 2, Used: 2, Quarantined: 2, Free: 1<<64 - 6, Automatic: 1<<64 - 6},
	}}, usage)
	var lines []string
	require.NoError(t, p.EachAddress(t.Context(), uid, func(h addrspace.Holding) error {
		line := fmt.Sprintf("%s %s %s", h.First, h.State, h.Owner)
		if h.First != h.Last {
			line = fmt.Sprintf("%s-%s", h.Last, line)
		}
		if h.State == addrspace.StateQuarantined {
			require.InDelta(t, time.Hour, time.Until(h.Until), float64(time.Minute))
		}
		require.Equal(t, h.Owner != addrspace.ByManifest, time.Since(h.Since) < time.Minute, line)
		lines = append(lines, line)
		return nil
	}))
	require.Equal(t, []string{
		"10.0.0.1 used gateway/0", "10.0.0.5 used a/eth/0",
		"10.0.0.100 used s0/eth/0", "10.0.0.101 quarantined s1/eth/0", "10.0.0.102 reserved alice", "10.0.0.103 used s3/eth/0",
		"10.0.0.119-10.0.0.110 reserved alice", "10.0.0.199-10.0.0.190 reserved manifest",
		"fd00::1 used gateway/1", "fd00::2 used s0/eth/1", "fd00::3 quarantined s1/eth/1", "fd00::4 quarantined s2/eth/1", "fd00::5 used s3/eth/1",
	}, lines)
	stop := fmt.Errorf("stop")
	require.ErrorIs(t, p.EachAddress(t.Context(), uid, func(addrspace.Holding) error { return stop }), stop)
	_, err = p.Usage(t.Context(), "absent")
	require.ErrorIs(t, err, errs.ErrNotFound)
	require.ErrorIs(t, p.EachAddress(t.Context(), "absent", nil), errs.ErrNotFound)
}

func TestAListingReadsPageByPage(t *testing.T) {
	p := newProcess(t, devstacktest.Etcd(t), none)
	uid := p.settle(t, manifest.Subnet{CIDR: "10.16.0.0/16", Gateway: "10.16.0.1"})
	p.fill(t, uid, func(n int) bool { return n < 5000 })
	before, n, last := p.trips.Load(), 0, netip.Addr{}
	require.NoError(t, p.EachAddress(t.Context(), uid, func(h addrspace.Holding) error {
		require.True(t, last.Less(h.First))
		last = h.First
		n++
		return nil
	}))
	require.Equal(t, 4999, n)
	require.LessOrEqual(t, p.trips.Load()-before, int64(7))
}

func TestReservingAndAllocatingAtOnceNeverMeet(t *testing.T) {
	endpoint := devstacktest.Etcd(t)
	first := newProcess(t, endpoint, none)
	uid := first.settle(t, manifest.Subnet{CIDR: "10.0.0.0/27", Gateway: "10.0.0.1"})
	var group errgroup.Group
	var mu sync.Mutex
	had := 0
	for n := range 3 {
		p := newProcess(t, endpoint, none)
		for m := range 6 {
			group.Go(func() error {
				for r := range 6 {
					owner := fmt.Sprintf("p%d-g%d-r%d", n, m, r)
					if _, err := p.one(t.Context(), uid, owner+"/eth/0"); err != nil {
						return err
					}
					if err := p.Release(t.Context(), uid, owner+"/"); err != nil {
						return err
					}
				}
				return nil
			})
		}
		group.Go(func() error {
			for i := range 20 {
				r := span(fmt.Sprintf("10.0.0.%d", 2+(i*7+n)%28))
				err := p.Reserve(t.Context(), uid, r, addrspace.Reservation{By: fmt.Sprint("user", n)})
				if err != nil && errs.ClassOf(err) == errs.Transient && !strings.Contains(err.Error(), "has an owner") && !strings.Contains(err.Error(), "are reserved by") {
					return err
				}
				if err == nil {
					mu.Lock()
					had++
					mu.Unlock()
				}
				if err := first.inconsistency(t, uid); err != nil {
					return err
				}
				if err := p.Unreserve(t.Context(), uid, r); err != nil {
					return err
				}
			}
			return nil
		})
	}
	require.NoError(t, group.Wait())
	require.Positive(t, had)
	requireConsistent(t, first, uid)
}
