package addresses

import (
	"context"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"

	"burrow.dev/burrow/internal/addrspace"
	"burrow.dev/burrow/internal/config"
	"burrow.dev/burrow/internal/devstacktest"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/etcdstate"
	"burrow.dev/burrow/manifest"
)

// process is a store and an allocator as one worker has them, with its requests counted.
type process struct {
	*Allocator
	store *etcdstate.Store
	trips *atomic.Int64
}

func newProcess(t *testing.T, endpoint string, quarantine time.Duration) process {
	t.Helper()
	return newProcessOn(t, config.Etcd{Endpoints: []string{endpoint}}, quarantine)
}

func newProcessOn(t *testing.T, etcd config.Etcd, quarantine time.Duration) process {
	t.Helper()
	etcd.Prefix = "/test/" + t.Name()
	trips := &atomic.Int64{}
	count := func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		trips.Add(1)
		return invoke(ctx, method, req, reply, cc, opts...)
	}
	store, err := etcdstate.Open(etcd,
		etcdstate.Options{DialOptions: []grpc.DialOption{grpc.WithChainUnaryInterceptor(count)}, LockTTL: 2 * time.Second})
	require.NoError(t, err)
	a := New(store, Options{Quarantine: quarantine})
	t.Cleanup(func() { a.Close(); require.NoError(t, store.Close()) })
	return process{a, store, trips}
}

func (p process) settle(t *testing.T, subnets ...manifest.Subnet) string {
	t.Helper()
	uid := uuid.NewString()
	_, err := p.Settle(t.Context(), uid, "net", func([]addrspace.Entry) (manifest.NetworkStatus, error) {
		return manifest.NetworkStatus{Subnets: subnets}, nil
	})
	require.NoError(t, err)
	return uid
}

func (p process) one(ctx context.Context, uid, owner string) (netip.Prefix, error) {
	got, err := p.Allocate(ctx, uid, []addrspace.Want{{Owner: owner}})
	if err != nil {
		return netip.Prefix{}, err
	}
	return got[0], nil
}

// awaitUnlocked waits until nothing of a network is being served.
func (p process) awaitUnlocked(t *testing.T, uid string) {
	t.Helper()
	require.Eventually(t, func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.queues[uid] == nil
	}, 10*time.Second, 100*time.Microsecond)
}

const none = -1

func TestNextAddressIsHandedOutAndGatewayNetworkBroadcastNever(t *testing.T) {
	p := newProcess(t, devstacktest.Etcd(t), none)
	tests := map[string]struct {
		subnet manifest.Subnet
		want   []string
	}{
		"slash 30":           {manifest.Subnet{CIDR: "10.0.0.0/30", Gateway: "10.0.0.1"}, []string{"10.0.0.2/30"}},
		"slash 29":           {manifest.Subnet{CIDR: "10.0.0.8/29", Gateway: "10.0.0.10"}, []string{"10.0.0.9/29", "10.0.0.11/29", "10.0.0.12/29", "10.0.0.13/29", "10.0.0.14/29"}},
		"no gateway":         {manifest.Subnet{CIDR: "10.0.0.0/30", Gateway: "none"}, []string{"10.0.0.1/30", "10.0.0.2/30"}},
		"range and reserved": {manifest.Subnet{CIDR: "10.0.0.0/8", Gateway: "10.0.0.1", Range: "10.0.0.254-10.0.1.3", Reserved: []string{"10.0.0.255-10.0.1.1"}}, []string{"10.0.0.254/8", "10.0.1.2/8", "10.0.1.3/8"}},
		"v6 126":             {manifest.Subnet{CIDR: "fd00::/126", Gateway: "fd00::1"}, []string{"fd00::2/126", "fd00::3/126"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			uid := p.settle(t, tt.subnet)
			for i, want := range tt.want {
				got, err := p.one(t.Context(), uid, fmt.Sprintf("s%d/eth/0", i))
				require.NoError(t, err)
				require.Equal(t, want, got.String())
			}
			_, err := p.one(t.Context(), uid, "late/eth/0")
			var full *addrspace.ExhaustedError
			require.ErrorAs(t, err, &full)
			require.ErrorIs(t, err, errs.ErrNoSpace)
			require.Equal(t, fmt.Sprint(len(tt.want)), full.Size)
		})
	}
}

func TestHugeSubnetsWork(t *testing.T) {
	p := newProcess(t, devstacktest.Etcd(t), none)
	uid := p.settle(t, manifest.Subnet{CIDR: "10.0.0.0/8", Gateway: "10.0.0.1"}, manifest.Subnet{CIDR: "2001:db8::/64", Gateway: "2001:db8::1"})
	got, err := p.Allocate(t.Context(), uid, []addrspace.Want{{Owner: "s/eth/0"}, {Owner: "s/eth/1", Subnet: 1}})
	require.NoError(t, err)
	require.Equal(t, "[10.0.0.2/8 2001:db8::2/64]", fmt.Sprint(got))
}

func TestSameOwnerGetsTheSameAddressAgain(t *testing.T) {
	p := newProcess(t, devstacktest.Etcd(t), none)
	uid := p.settle(t, manifest.Subnet{CIDR: "10.0.0.0/24", Gateway: "10.0.0.1"})
	first, err := p.one(t.Context(), uid, "s/eth/0")
	require.NoError(t, err)
	for range 3 {
		again, err := p.one(t.Context(), uid, "s/eth/0")
		require.NoError(t, err)
		require.Equal(t, first, again)
	}
	_, err = p.Allocate(t.Context(), uid, []addrspace.Want{{Owner: "s/eth/0", Static: netip.MustParseAddr("10.0.0.77")}})
	var holder *addrspace.HolderError
	require.ErrorAs(t, err, &holder)
}

func TestStaticAddresses(t *testing.T) {
	p := newProcess(t, devstacktest.Etcd(t), time.Minute)
	uid := p.settle(t, manifest.Subnet{CIDR: "10.0.0.0/24", Gateway: "10.0.0.1", Range: "10.0.0.100-10.0.0.200", Reserved: []string{"10.0.0.66"}})
	static := func(owner, addr string) error {
		_, err := p.Allocate(t.Context(), uid, []addrspace.Want{{Owner: owner, Static: netip.MustParseAddr(addr)}})
		return err
	}
	require.NoError(t, static("s/eth/0", "10.0.0.5"), "outside the range, inside the subnet")
	require.NoError(t, static("s/eth/1", "10.0.0.100"))
	got, err := p.one(t.Context(), uid, "s/eth/2")
	require.NoError(t, err)
	require.Equal(t, "10.0.0.101/24", got.String(), "a static address is not handed out")
	for _, addr := range []string{"10.0.0.0", "10.0.0.1", "10.0.0.255", "10.0.0.66", "10.0.1.1", "fd00::1"} {
		require.ErrorIs(t, static("t/eth/0", addr), errs.ErrInvalid, addr)
	}
	var taken *addrspace.TakenError
	require.ErrorAs(t, static("t/eth/0", "10.0.0.5"), &taken)
	require.Equal(t, "s/eth/0", taken.Owner)
	require.NoError(t, p.Release(t.Context(), uid, "s/eth/0"))
	var held *addrspace.QuarantineError
	require.ErrorAs(t, static("t/eth/0", "10.0.0.5"), &held)
}

func TestAllOrNoneOfARequest(t *testing.T) {
	p := newProcess(t, devstacktest.Etcd(t), none)
	uid := p.settle(t, manifest.Subnet{CIDR: "10.0.0.0/24", Gateway: "10.0.0.1"}, manifest.Subnet{CIDR: "10.1.0.0/30", Gateway: "10.1.0.1"})
	_, err := p.Allocate(t.Context(), uid, []addrspace.Want{{Owner: "a/eth/0"}, {Owner: "a/eth/1", Subnet: 1}})
	require.NoError(t, err)
	_, err = p.Allocate(t.Context(), uid, []addrspace.Want{{Owner: "b/eth/0"}, {Owner: "b/eth/1", Subnet: 1}})
	require.ErrorIs(t, err, errs.ErrNoSpace)
	held, err := p.heldBy(t.Context(), keys{p.store, uid}, []string{"b/"})
	require.NoError(t, err)
	require.Empty(t, held)
}

func TestReleaseNeedsTheOwnerAndTwiceChangesNothing(t *testing.T) {
	p := newProcess(t, devstacktest.Etcd(t), none)
	uid := p.settle(t, manifest.Subnet{CIDR: "10.0.0.0/30", Gateway: "10.0.0.1"})
	_, err := p.one(t.Context(), uid, "new/eth/0")
	require.NoError(t, err)
	require.NoError(t, p.Release(t.Context(), uid, "old/eth/"))
	_, err = p.one(t.Context(), uid, "other/eth/0")
	require.ErrorIs(t, err, errs.ErrNoSpace, "somebody else's release freed it")
	for range 2 {
		require.NoError(t, p.Release(t.Context(), uid, "new/eth/"))
	}
	_, err = p.one(t.Context(), uid, "other/eth/0")
	require.NoError(t, err)
	require.NoError(t, p.Release(t.Context(), uid, "new/eth/"))
	require.Equal(t, []addrspace.User{{UID: "other", Count: 1}}, must(p.users(t.Context(), keys{p.store, uid})))
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func TestQuarantinedPoolIsTransientAndItsLeaseFreesIt(t *testing.T) {
	p := newProcess(t, devstacktest.Etcd(t), time.Hour)
	uid := p.settle(t, manifest.Subnet{CIDR: "10.0.0.0/30", Gateway: "10.0.0.1"})
	_, err := p.one(t.Context(), uid, "a/eth/0")
	require.NoError(t, err)
	require.NoError(t, p.Release(t.Context(), uid, "a/eth/"))
	for _, owner := range []string{"b/eth/0", "a/eth/0"} {
		_, err = p.one(t.Context(), uid, owner)
		var held *addrspace.QuarantineError
		require.ErrorAs(t, err, &held)
		require.Equal(t, errs.Transient, errs.ClassOf(err))
	}
	p.endQuarantine(t, uid)
	_, err = p.one(t.Context(), uid, "b/eth/0")
	require.NoError(t, err)
}

func TestQuarantineEndsByItself(t *testing.T) {
	p := newProcess(t, devstacktest.Etcd(t), time.Second)
	uid := p.settle(t, manifest.Subnet{CIDR: "10.0.0.0/30", Gateway: "10.0.0.1"})
	_, err := p.one(t.Context(), uid, "a/eth/0")
	require.NoError(t, err)
	before, err := p.store.Client().Get(t.Context(), "x")
	require.NoError(t, err)
	require.NoError(t, p.Release(t.Context(), uid, "a/eth/"))
	<-p.store.Client().Watch(t.Context(), keys{p.store, uid}.held(), clientv3.WithPrefix(), clientv3.WithRev(before.Header.Revision), clientv3.WithFilterPut())
	_, err = p.one(t.Context(), uid, "b/eth/0")
	require.NoError(t, err)
}

func TestForgetRefusesANetworkInUse(t *testing.T) {
	p := newProcess(t, devstacktest.Etcd(t), time.Minute)
	uid := p.settle(t, manifest.Subnet{CIDR: "10.0.0.0/24", Gateway: "10.0.0.1"})
	_, err := p.one(t.Context(), uid, "a/eth/0")
	require.NoError(t, err)
	var used *addrspace.InUseError
	require.ErrorAs(t, p.Forget(t.Context(), uid), &used)
	require.Equal(t, []addrspace.User{{UID: "a", Count: 1}}, used.Users)
	require.NoError(t, p.Release(t.Context(), uid, "a/"))
	require.NoError(t, p.store.AddReference(t.Context(), uid, "kvm1", "b"))
	require.ErrorAs(t, p.Forget(t.Context(), uid), &used)
	_, err = p.store.DropReference(t.Context(), uid, "kvm1", "b")
	require.NoError(t, err)
	require.NoError(t, p.Forget(t.Context(), uid))
	require.NoError(t, p.Forget(t.Context(), uid), "again")
	_, err = p.one(t.Context(), uid, "a/eth/0")
	require.ErrorIs(t, err, errs.ErrNotFound)
	left, err := p.store.Client().Get(t.Context(), p.store.Key("ipam", ""), clientv3.WithPrefix(), clientv3.WithKeysOnly())
	require.NoError(t, err)
	require.Zero(t, left.Count)
}

func TestConcurrentProcessesNeverShareAnAddress(t *testing.T) {
	const processes, goroutines, rounds = 4, 16, 6
	endpoint := devstacktest.Etcd(t)
	first := newProcess(t, endpoint, none)
	uid := first.settle(t, manifest.Subnet{CIDR: "10.0.0.0/25", Gateway: "10.0.0.1"})
	var mu sync.Mutex
	owners := map[netip.Prefix]string{}
	var group errgroup.Group
	for n := range processes {
		p := newProcess(t, endpoint, none)
		for m := range goroutines {
			group.Go(func() error {
				for r := range rounds {
					owner := fmt.Sprintf("p%d-g%d-r%d", n, m, r)
					got, err := p.one(t.Context(), uid, owner+"/eth/0")
					if err != nil {
						return err
					}
					mu.Lock()
					other, taken := owners[got]
					owners[got] = owner
					mu.Unlock()
					if taken {
						return fmt.Errorf("%s has two owners: %s and %s", got, other, owner)
					}
					if r == rounds-1 {
						return nil
					}
					mu.Lock()
					delete(owners, got)
					mu.Unlock()
					if err := p.Release(t.Context(), uid, owner+"/"); err != nil {
						return err
					}
				}
				return nil
			})
		}
	}
	require.NoError(t, group.Wait())
	require.Len(t, owners, processes*goroutines)
	requireConsistent(t, first, uid)
}
