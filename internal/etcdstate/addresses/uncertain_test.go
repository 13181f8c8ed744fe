package addresses

import (
	"context"
	"crypto/rand"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"burrow.dev/burrow/internal/config"
	"burrow.dev/burrow/internal/devstacktest"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/etcdstate"
	"burrow.dev/burrow/manifest"
)

// The answer to a call's transaction is lost, its lock too, and somebody else undoes what it
// did. The call must not be made a second time, nor say that it was refused: it had its
// effect, and only its caller knows whether it is still wanted.
func TestACallWhoseAnswerWasLostHasNoSecondEffect(t *testing.T) {
	only := netip.MustParseAddr("10.0.0.2")
	tests := map[string]struct {
		before func(p process, uid string) error
		call   func(ctx context.Context, p process, uid string) error
		// meanwhile is what others do when the call has had its effect.
		meanwhile func(ctx context.Context, p process, uid string) error
		owner     string // who has the address in the end
	}{
		"allocate": {
			call: func(ctx context.Context, p process, uid string) error {
				_, err := p.one(ctx, uid, "s1/eth/0")
				return err
			},
			meanwhile: func(ctx context.Context, p process, uid string) error {
				if err := p.Release(ctx, uid, "s1/"); err != nil {
					return err
				}
				return p.static(ctx, uid, "s2/eth/0", only.String())
			},
			owner: "s2/eth/0",
		},
		"release": {
			before: func(p process, uid string) error {
				return p.static(context.Background(), uid, "s1/eth/0", only.String())
			},
			call: func(ctx context.Context, p process, uid string) error { return p.Release(ctx, uid, "s1/") },
			meanwhile: func(ctx context.Context, p process, uid string) error {
				return p.static(ctx, uid, "s1/eth/0", only.String())
			},
			owner: "s1/eth/0",
		},
		"reserve": {
			call: func(ctx context.Context, p process, uid string) error {
				return p.Reserve(ctx, uid, span(only.String()), alice)
			},
			meanwhile: func(ctx context.Context, p process, uid string) error {
				if err := p.Unreserve(ctx, uid, span(only.String())); err != nil {
					return err
				}
				return p.static(ctx, uid, "s2/eth/0", only.String())
			},
			owner: "s2/eth/0",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			endpoint := devstacktest.Etcd(t)
			other := newProcess(t, endpoint, none)
			uid := other.settle(t, manifest.Subnet{CIDR: "10.0.0.0/30", Gateway: "10.0.0.1"})
			if tt.before != nil {
				require.NoError(t, tt.before(other, uid))
			}
			var lost atomic.Bool
			p := newLossyProcess(t, endpoint, hooks{lose: func() bool {
				if !lost.CompareAndSwap(false, true) {
					return false
				}
				_, err := other.store.Client().Delete(context.Background(), other.store.Key("locks", "ipam", uid, ""), clientv3.WithPrefix())
				if err == nil {
					err = tt.meanwhile(context.Background(), other, uid)
				}
				if err != nil {
					t.Error(err)
				}
				return true
			}})
			err := tt.call(t.Context(), p, uid)
			require.Error(t, err)
			require.Equal(t, errs.Transient, errs.ClassOf(err))
			require.ErrorIs(t, err, errs.ErrUnavailable)
			require.NotErrorIs(t, err, errs.ErrExists)
			require.NotErrorIs(t, err, errs.ErrNoSpace)
			held, err := other.heldBy(t.Context(), keys{other.store, uid}, []string{"s"})
			require.NoError(t, err)
			require.Len(t, held, 1)
			require.Equal(t, tt.owner, held[0].owner)
			requireConsistent(t, other, uid)
		})
	}
}

// etcd is full between the lock and the write.
func TestAWriteThatEtcdRefusesIsNotTakenForALostAnswer(t *testing.T) {
	cluster := devstacktest.StartEtcdCluster(t, 1, devstacktest.ClusterOptions{QuotaBytes: 8 << 20})
	endpoint := cluster.Endpoints()[0]
	other := newProcess(t, endpoint, none)
	uid := other.settle(t, manifest.Subnet{CIDR: "10.0.0.0/24", Gateway: "10.0.0.1"})
	p := newLossyProcess(t, endpoint, hooks{before: func() {
		filling := strings.Repeat("x", 1<<20)
		for range 100 {
			if _, err := other.store.Client().Put(context.Background(), "filling/"+rand.Text(), filling); err != nil {
				return
			}
		}
	}})
	_, err := p.one(t.Context(), uid, "s1/eth/0")
	require.ErrorIs(t, err, errs.ErrNoSpace)
	require.Equal(t, errs.Operator, errs.ClassOf(err))
	require.ErrorContains(t, err, "disarm the alarm")
}

// hooks are what happens at a write of addresses: before it, and whether its response is lost.
type hooks struct {
	before func()
	lose   func() bool
}

// newLossyProcess is newProcess that lets hooks happen at writes of addresses. A response is
// lost after etcd has done what was asked.
func newLossyProcess(t *testing.T, endpoint string, at hooks) process {
	t.Helper()
	intercept := func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		if at.before != nil && writesAddresses(req) {
			at.before()
		}
		err := invoke(ctx, method, req, reply, cc, opts...)
		if err == nil && at.lose != nil && writesAddresses(req) && at.lose() {
			return status.Error(codes.Unavailable, "the response was lost")
		}
		return err
	}
	store, err := etcdstate.Open(config.Etcd{Endpoints: []string{endpoint}, Prefix: "/test/" + t.Name()},
		etcdstate.Options{LockTTL: 2 * time.Second, DialOptions: []grpc.DialOption{grpc.WithChainUnaryInterceptor(intercept)}})
	require.NoError(t, err)
	a := New(store, Options{Quarantine: none})
	t.Cleanup(func() { a.Close(); require.NoError(t, store.Close()) })
	return process{Allocator: a, store: store}
}
