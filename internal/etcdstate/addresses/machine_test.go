package addresses

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go4.org/netipx"
	"pgregory.net/rapid"

	"burrow.dev/burrow/internal/addrspace"
	"burrow.dev/burrow/internal/devstacktest"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
)

// machine drives an Allocator and the model side by side.
type machine struct {
	p          process
	quarantine bool
	m          plain
	n          int // networks made
}

func (s *machine) begin(t *rapid.T) {
	s.n++
	s.m = plain{uid: uuid.NewString(), exists: true, owners: map[string]netip.Addr{}, held: map[netip.Addr]string{}, resting: map[netip.Addr]bool{}}
	s.settle(t)
}

func (s *machine) settle(t *rapid.T) {
	out, err := s.p.Settle(context.Background(), s.m.uid, "net", func([]addrspace.Entry) (manifest.NetworkStatus, error) {
		return manifest.NetworkStatus{Subnets: machineSubnets}, nil
	})
	require.NoError(t, err)
	require.Equal(t, machineSubnets, out.Subnets)
	s.m.exists = true
}

func drawOwner(t *rapid.T, subnet int) string {
	return fmt.Sprintf("s%d/eth/%d", rapid.IntRange(0, 7).Draw(t, "server"), subnet)
}

func drawAddr(t *rapid.T) netip.Addr {
	prefix := rapid.SampledFrom(machinePrefixes).Draw(t, "subnet")
	a := prefix.Addr()
	for range rapid.IntRange(0, 15).Draw(t, "nth") { // may be outside
		a = a.Next()
	}
	return a
}

// Allocate asks for one or several addresses of subnets, unasked or by name.
func (s *machine) Allocate(t *rapid.T) {
	var wants []addrspace.Want
	for subnet := range machinePrefixes {
		if !rapid.Bool().Draw(t, "wants") {
			continue
		}
		w := addrspace.Want{Owner: drawOwner(t, subnet), Subnet: subnet}
		if rapid.IntRange(0, 3).Draw(t, "static") == 0 {
			w.Static = drawAddr(t)
		}
		wants = append(wants, w)
	}
	got, err := s.p.Allocate(context.Background(), s.m.uid, wants)
	if refusal := s.refusal(wants); refusal != nil {
		require.Error(t, err)
		require.True(t, slices.ContainsFunc(refusal, func(one error) bool { return errors.Is(err, one) }), "%v, not %v", err, refusal)
		return
	}
	require.NoError(t, err)
	require.Len(t, got, len(wants))
	for i, w := range wants {
		a := got[i].Addr()
		if has, ok := s.m.owners[w.Owner]; ok {
			require.Equal(t, has, a, "same owner, same answer")
			continue
		}
		require.Empty(t, s.m.ownerOf(a))
		require.False(t, s.m.resting[a])
		if w.Static.IsValid() {
			require.Equal(t, w.Static, a)
		} else {
			require.Contains(t, s.m.automatic(w.Subnet), a)
			require.Equal(t, machinePrefixes[w.Subnet], got[i].Masked())
		}
		s.m.owners[w.Owner] = a
	}
}

// refusal gives what the wants must be refused for: any of it, which of several depends on
// the order.
func (s *machine) refusal(wants []addrspace.Want) (anyOf []error) {
	lacking := map[int]int{}
	asked := map[netip.Addr]bool{}
	fresh := 0
	for _, w := range wants {
		has, ok := s.m.owners[w.Owner]
		switch {
		case ok && w.Static.IsValid() && has != w.Static:
			anyOf = append(anyOf, errs.ErrConflict)
		case ok:
		case !s.m.exists:
			return []error{errs.ErrNotFound}
		case !w.Static.IsValid():
			fresh++
			lacking[w.Subnet]++
		default:
			fresh++
			switch a := w.Static; {
			case !s.host(a) || s.m.held[a] != "":
				anyOf = append(anyOf, errs.ErrInvalid)
			case s.m.ownerOf(a) != "" || asked[a]:
				anyOf = append(anyOf, errs.ErrExists)
			case s.m.resting[a]:
				anyOf = append(anyOf, errs.ErrUnavailable)
			}
			asked[w.Static] = true
		}
	}
	for subnet, n := range lacking {
		free, resting := 0, 0
		for _, a := range s.m.automatic(subnet) {
			switch {
			case s.m.ownerOf(a) != "", asked[a]:
			case s.m.resting[a]:
				resting++
			default:
				free++
			}
		}
		if n > free && resting > 0 {
			anyOf = append(anyOf, errs.ErrUnavailable)
		}
		if n > free && resting == 0 {
			anyOf = append(anyOf, errs.ErrNoSpace)
		}
	}
	return anyOf
}

func (s *machine) host(a netip.Addr) bool {
	for subnet := range machinePrefixes {
		if slices.Contains(s.m.hosts(subnet), a) {
			return true
		}
	}
	return false
}

// Release gives back what one server has, or one of its NICs, perhaps twice.
func (s *machine) Release(t *rapid.T) {
	prefix := rapid.SampledFrom([]string{"", "eth/", "eth/0"}).Draw(t, "prefix")
	prefix = fmt.Sprintf("s%d/%s", rapid.IntRange(0, 7).Draw(t, "server"), prefix)
	prefixes := slices.Repeat([]string{prefix}, rapid.IntRange(1, 2).Draw(t, "times"))
	require.NoError(t, s.p.Release(context.Background(), s.m.uid, prefixes...))
	for owner, a := range maps.Clone(s.m.owners) {
		if strings.HasPrefix(owner, prefix) {
			delete(s.m.owners, owner)
			if s.quarantine {
				s.m.resting[a] = true
			}
		}
	}
}

// inside reports whether a range is in one subnet and has a host that the manifest leaves.
func (s *machine) inside(r netipx.IPRange) bool {
	return slices.ContainsFunc(machinePrefixes, func(p netip.Prefix) bool { return p.Contains(r.From()) && p.Contains(r.To()) }) &&
		slices.ContainsFunc(each(r), s.host)
}

// Reserve takes a range out, in the name of one of two.
func (s *machine) Reserve(t *rapid.T) {
	r := drawRange(t)
	by := rapid.SampledFrom([]string{"alice", "bob"}).Draw(t, "by")
	err := s.p.Reserve(context.Background(), s.m.uid, r, addrspace.Reservation{By: by})
	owned := slices.ContainsFunc(each(r), func(a netip.Addr) bool { return s.m.ownerOf(a) != "" })
	reserved := slices.ContainsFunc(each(r), func(a netip.Addr) bool { return s.m.held[a] != "" })
	switch {
	case !s.m.exists:
		require.ErrorIs(t, err, errs.ErrNotFound)
	case !s.inside(r):
		require.ErrorIs(t, err, errs.ErrInvalid)
	case owned:
		require.ErrorIs(t, err, errs.ErrExists)
	case reserved && s.wholeReservation(r, by):
		require.NoError(t, err, "again")
	case reserved:
		require.ErrorIs(t, err, errs.ErrExists)
	default:
		require.NoError(t, err)
		s.n++
		for _, a := range each(r) {
			s.m.held[a] = fmt.Sprintf("%s#%d", by, s.n)
		}
	}
}

// wholeReservation reports whether a range is one reservation of a person's, or what an
// Unreserve has left of one.
func (s *machine) wholeReservation(r netipx.IPRange, by string) bool {
	id := s.m.held[r.From()]
	if !strings.HasPrefix(id, by+"#") || s.m.held[r.From().Prev()] == id || s.m.held[r.To().Next()] == id {
		return false
	}
	return !slices.ContainsFunc(each(r), func(a netip.Addr) bool { return s.m.held[a] != id })
}

// Unreserve gives a range back, whoever reserved it.
func (s *machine) Unreserve(t *rapid.T) {
	r := drawRange(t)
	err := s.p.Unreserve(context.Background(), s.m.uid, r)
	switch {
	case !s.m.exists:
		require.ErrorIs(t, err, errs.ErrNotFound)
	case !s.inside(r):
		require.ErrorIs(t, err, errs.ErrInvalid)
	default:
		require.NoError(t, err)
		for _, a := range each(r) {
			delete(s.m.held, a)
		}
		s.split(r)
	}
}

// split tells the two ends of a reservation apart whose middle was given back.
func (s *machine) split(r netipx.IPRange) {
	before, after := s.m.held[r.From().Prev()], r.To().Next()
	if id := s.m.held[after]; id != "" && id == before {
		s.n++
		for a := after; s.m.held[a] == id; a = a.Next() {
			s.m.held[a] = fmt.Sprintf("%s#%d", id[:strings.IndexByte(id, '#')], s.n)
		}
	}
}

// EndQuarantine lets the leases of what was released run out.
func (s *machine) EndQuarantine(t *rapid.T) {
	s.p.endQuarantine(t, s.m.uid)
	clear(s.m.resting)
}

// endQuarantine revokes the leases of a network's quarantine, as time would end them.
func (p process) endQuarantine(t require.TestingT, uid string) {
	resp, err := p.store.Client().Get(context.Background(), keys{p.store, uid}.held(), clientv3.WithPrefix()) // keys only would come without their leases
	require.NoError(t, err)
	leases := map[int64]bool{}
	for _, kv := range resp.Kvs {
		leases[kv.Lease] = true
	}
	require.NotContains(t, leases, int64(0), "a quarantine without a lease never ends")
	for lease := range leases {
		_, err := p.store.Client().Revoke(context.Background(), clientv3.LeaseID(lease))
		require.NoError(t, err)
	}
}

// DeleteNetwork forgets the network, unless servers are on it.
func (s *machine) DeleteNetwork(t *rapid.T) {
	err := s.p.Forget(context.Background(), s.m.uid)
	if len(s.m.owners) > 0 {
		require.ErrorIs(t, err, errs.ErrBusy)
		return
	}
	require.NoError(t, err)
	s.m.exists = false
	clear(s.m.held)
	clear(s.m.resting)
	left, err := s.p.store.KeysBelow(context.Background(), "ipam/"+s.m.uid)
	require.NoError(t, err)
	require.Empty(t, left)
}

// Recreate makes a network of that name again: under a new uid, as a user's is.
func (s *machine) Recreate(t *rapid.T) {
	if s.m.exists {
		t.Skip("there is one")
	}
	old := s.m.uid
	s.begin(t)
	_, err := s.p.Usage(context.Background(), old)
	require.ErrorIs(t, err, errs.ErrNotFound)
}

// Settle settles it again: it stays as it is.
func (s *machine) Settle(t *rapid.T) {
	if !s.m.exists {
		t.Skip("there is none")
	}
	s.settle(t)
}

// Check compares everything that can be seen, after every step.
func (s *machine) Check(t *rapid.T) {
	require.NoError(t, s.p.inconsistency(t, s.m.uid))
	usage, err := s.p.Usage(context.Background(), s.m.uid)
	if !s.m.exists {
		require.ErrorIs(t, err, errs.ErrNotFound)
		return
	}
	require.NoError(t, err)
	for subnet, prefix := range machinePrefixes {
		want := addrspace.SubnetUsage{Subnet: prefix}
		for _, a := range s.m.hosts(subnet) {
			want.Size++
			switch {
			case s.m.ownerOf(a) != "":
				want.Used++
			case s.m.held[a] != "":
				want.Reserved++
			case s.m.resting[a]:
				want.Quarantined++
			default:
				want.Free++
				if slices.Contains(s.m.automatic(subnet), a) {
					want.Automatic++
				}
			}
		}
		if subnet == 0 { // 10.0.0.5 is the manifest's
			want.Size++
			want.Reserved++
		}
		require.Equal(t, want, usage.Subnets[subnet])
	}
	seen := map[string]netip.Addr{}
	require.NoError(t, s.p.EachAddress(context.Background(), s.m.uid, func(h addrspace.Holding) error {
		if h.State == addrspace.StateUsed && !strings.HasPrefix(h.Owner, addrspace.GatewayOwner) {
			seen[h.Owner] = h.First
		}
		return nil
	}))
	require.Equal(t, s.m.owners, seen)
}

// Any sequence of calls does what a few maps would do.
func TestTheAllocatorIsAPlainMapWithQuarantine(t *testing.T) {
	if os.Getenv("BURROW_FAULTS") == "" {
		require.NoError(t, flag.Set("rapid.checks", "20")) // each is a few dozen calls of etcd
	}
	endpoint := devstacktest.Etcd(t)
	for name, quarantine := range map[string]time.Duration{"quarantine": time.Hour, "none": none} {
		t.Run(name, func(t *testing.T) {
			p := newProcess(t, endpoint, quarantine)
			rapid.Check(t, func(t *rapid.T) {
				s := &machine{p: p, quarantine: quarantine > 0}
				s.begin(t)
				t.Repeat(rapid.StateMachineActions(s))
			})
		})
	}
}
