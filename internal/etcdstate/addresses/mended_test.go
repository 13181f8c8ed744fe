package addresses

import (
	"context"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"

	"burrow.dev/burrow/internal/addrspace"
	"burrow.dev/burrow/internal/devstacktest"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
)

// An activity that is tried again while its first attempt still runs asks for the same
// owner in the same process.
func TestCallersThatAskForTheSameOwnerAtOnceGetTheSameAddress(t *testing.T) {
	p := newProcess(t, devstacktest.Etcd(t), none)
	uid := p.settle(t, manifest.Subnet{CIDR: "10.0.0.0/24", Gateway: "10.0.0.1"})
	var got [32]netip.Prefix
	var group errgroup.Group
	for i := range got {
		group.Go(func() (err error) {
			got[i], err = p.one(t.Context(), uid, fmt.Sprintf("s%d/eth/0", i%4))
			return err
		})
	}
	require.NoError(t, group.Wait())
	for i, prefix := range got {
		require.Equal(t, got[i%4], prefix)
	}
	requireConsistent(t, p, uid)
}

func TestTwiceTheSameOwnerInOneRequestIsRefused(t *testing.T) {
	p := newProcess(t, devstacktest.Etcd(t), none)
	uid := p.settle(t, manifest.Subnet{CIDR: "10.0.0.0/24", Gateway: "10.0.0.1"})
	_, err := p.Allocate(t.Context(), uid, []addrspace.Want{{Owner: "s/eth/0"}, {Owner: "s/eth/0"}})
	require.ErrorIs(t, err, errs.ErrInvalid)
	require.Equal(t, errs.Permanent, errs.ClassOf(err))
}

// Subnets smaller than a block of 256 lie in one: each has room of its own.
func TestSubnetsOfOneBlockAreCountedApart(t *testing.T) {
	p := newProcess(t, devstacktest.Etcd(t), none)
	uid := p.settle(t, manifest.Subnet{CIDR: "10.0.0.0/29", Gateway: "10.0.0.1"}, manifest.Subnet{CIDR: "10.0.0.8/29", Gateway: "10.0.0.9"})
	for subnet := range 2 {
		for i := range 5 {
			_, err := p.Allocate(t.Context(), uid, []addrspace.Want{{Owner: fmt.Sprintf("s%d/eth/%d", i, subnet), Subnet: subnet}})
			require.NoError(t, err, "subnet %d, server %d", subnet, i)
		}
		_, err := p.Allocate(t.Context(), uid, []addrspace.Want{{Owner: fmt.Sprintf("late/eth/%d", subnet), Subnet: subnet}})
		require.ErrorIs(t, err, errs.ErrNoSpace)
	}
}

// Requests are decided in one plan: one that fails gives back what it had set aside.
func TestARequestThatFailsTakesNothingFromThoseServedWithIt(t *testing.T) {
	p := newProcess(t, devstacktest.Etcd(t), none)
	uid := p.settle(t, manifest.Subnet{CIDR: "10.0.0.0/30", Gateway: "10.0.0.1"})
	state := readPool(t, p, uid)
	ctx := t.Context()
	greedy := newRequest(ctx, []addrspace.Want{{Owner: "a/0", Static: netip.MustParseAddr("10.0.0.2")}, {Owner: "a/1"}}, nil)
	modest := newRequest(ctx, []addrspace.Want{{Owner: "b/0"}}, nil)
	plan := newPlan(keys{p.store, uid}, state, map[string]int{}, outstanding([]*request{greedy, modest}))
	plan.busy[plan.blocks[0]] = map[netip.Addr]bool{}
	plan.assign(time.Now())
	require.Len(t, plan.granted, 1)
	require.Equal(t, "b/0", plan.granted[0].item.want.Owner)
	require.Len(t, plan.exhausted, 1)
}

// What a transaction is about to do is no answer before it is done: it may fail.
func TestAnAddressIsNotCalledTakenBeforeItIs(t *testing.T) {
	p := newProcess(t, devstacktest.Etcd(t), none)
	uid := p.settle(t, manifest.Subnet{CIDR: "10.0.0.0/30", Gateway: "10.0.0.1"})
	want := func(owner string) *request {
		return newRequest(t.Context(), []addrspace.Want{{Owner: owner, Static: netip.MustParseAddr("10.0.0.2")}}, nil)
	}
	first, second := want("a/0"), want("b/0")
	plan := newPlan(keys{p.store, uid}, readPool(t, p, uid), map[string]int{}, outstanding([]*request{first, second}))
	plan.assign(time.Now())
	require.Len(t, plan.granted, 1)
	require.False(t, second.finished())
}

func readPool(t *testing.T, p process, uid string) *reading {
	t.Helper()
	resp, err := p.store.Client().Get(t.Context(), keys{p.store, uid}.pool())
	require.NoError(t, err)
	spaces, err := parsePool(resp.Kvs[0])
	require.NoError(t, err)
	return &reading{pool: resp.Kvs[0], spaces: spaces}
}

// An activity is given up, and its undo runs elsewhere while its transaction is under way.
func TestReleaseWaitsForAnAllocationWhoseCallerHasGivenUp(t *testing.T) {
	endpoint := devstacktest.Etcd(t)
	gate := newGated(false)
	slowly := newGatedProcess(t, endpoint, gate)
	p := newProcess(t, endpoint, none)
	uid := p.settle(t, manifest.Subnet{CIDR: "10.0.0.0/24", Gateway: "10.0.0.1"})
	ctx, giveUp := context.WithCancel(t.Context())
	asked := make(chan error)
	go func() {
		_, err := slowly.Allocate(ctx, uid, []addrspace.Want{{Owner: "s/eth/0"}})
		asked <- err
	}()
	<-gate.reached
	giveUp()
	require.ErrorIs(t, <-asked, context.Canceled)
	released := make(chan error)
	go func() { released <- p.Release(t.Context(), uid, "s/") }()
	select {
	case err := <-released:
		close(gate.going)
		require.FailNow(t, "released before the allocation was decided", err)
	case <-p.waiting(t, uid):
		close(gate.going)
	}
	require.NoError(t, <-released)
	users, err := p.users(t.Context(), keys{p.store, uid})
	require.NoError(t, err)
	require.Empty(t, users)
}

// waiting is closed when two wait for a network's lock.
func (p process) waiting(t *testing.T, uid string) <-chan struct{} {
	t.Helper()
	out := make(chan struct{})
	go func() {
		defer close(out)
		prefix := p.store.Key("locks", keys{p.store, uid}.lock(), "")
		events := p.store.Client().Watch(t.Context(), prefix, clientv3.WithPrefix())
		for {
			resp, err := p.store.Client().Get(t.Context(), prefix, clientv3.WithPrefix(), clientv3.WithCountOnly())
			if err != nil || resp.Count > 1 {
				return
			}
			<-events
		}
	}()
	return out
}

// A restored backup has the keys of one transaction at different revisions.
func TestReleaseAfterTheKeysWereWrittenAgain(t *testing.T) {
	p := newProcess(t, devstacktest.Etcd(t), none)
	uid := p.settle(t, manifest.Subnet{CIDR: "10.0.0.0/24", Gateway: "10.0.0.1"})
	_, err := p.one(t.Context(), uid, "s/eth/0")
	require.NoError(t, err)
	all, err := p.store.Client().Get(t.Context(), "/test/", clientv3.WithPrefix())
	require.NoError(t, err)
	for _, kv := range all.Kvs {
		_, err := p.store.Client().Put(t.Context(), string(kv.Key), string(kv.Value))
		require.NoError(t, err)
	}
	require.NoError(t, p.Release(t.Context(), uid, "s/"))
	requireConsistent(t, p, uid)
}

// An activity that is tried again while its first attempt still runs releases twice at once.
func TestReleasedTwiceAtOnceIsCountedOnce(t *testing.T) {
	p := newProcess(t, devstacktest.Etcd(t), none)
	uid := p.settle(t, manifest.Subnet{CIDR: "10.0.0.0/24", Gateway: "10.0.0.1"})
	for _, owner := range []string{"s/eth/0", "s/eth/1", "t/eth/0", "u/eth/0"} {
		_, err := p.one(t.Context(), uid, owner)
		require.NoError(t, err)
	}
	require.NoError(t, p.Release(t.Context(), uid, "s/", "s/", "s/eth/"))
	requireConsistent(t, p, uid)
}

func TestWhatIsAskedForIsGivenBeforeTheRest(t *testing.T) {
	p := newProcess(t, devstacktest.Etcd(t), none)
	uid := p.settle(t, manifest.Subnet{CIDR: "10.0.0.0/24", Gateway: "10.0.0.1"})
	got, err := p.Allocate(t.Context(), uid, []addrspace.Want{{Owner: "s/eth/0"}, {Owner: "s/eth/1", Static: netip.MustParseAddr("10.0.0.2")}})
	require.NoError(t, err)
	require.Equal(t, "[10.0.0.3/24 10.0.0.2/24]", fmt.Sprint(got))
}
