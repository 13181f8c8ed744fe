package addresses

import (
	"context"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"

	"burrow.dev/burrow/internal/addrspace"
	"burrow.dev/burrow/internal/config"
	"burrow.dev/burrow/internal/devstacktest"
	"burrow.dev/burrow/internal/etcdstate"
	"burrow.dev/burrow/manifest"
)

// gated lets a test act just before the first transaction that hands out an address.
type gated struct {
	// blind takes the comparisons out of that transaction: a writer without fencing.
	blind          bool
	reached, going chan struct{}
	first          chan struct{} // holds one token
}

func newGated(blind bool) *gated {
	g := &gated{blind: blind, reached: make(chan struct{}), going: make(chan struct{}), first: make(chan struct{}, 1)}
	g.first <- struct{}{}
	return g
}

func (g *gated) intercept(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	if txn, ok := req.(*etcdserverpb.TxnRequest); ok && handsOut(txn) {
		select {
		case <-g.first:
			close(g.reached)
			<-g.going
			if g.blind {
				txn.Compare = nil
			}
		default:
		}
	}
	return invoke(ctx, method, req, reply, cc, opts...)
}

func handsOut(txn *etcdserverpb.TxnRequest) bool {
	return len(txn.Success) > 0 && strings.Contains(string(txn.Success[0].GetRequestPut().GetKey()), "/a/")
}

// newGatedProcess is newProcess with a gate.
func newGatedProcess(t *testing.T, endpoint string, g *gated) process {
	t.Helper()
	store, err := etcdstate.Open(config.Etcd{Endpoints: []string{endpoint}, Prefix: "/test/" + t.Name()},
		etcdstate.Options{LockTTL: 2 * time.Second, DialOptions: []grpc.DialOption{grpc.WithChainUnaryInterceptor(g.intercept)}})
	require.NoError(t, err)
	a := New(store, Options{Quarantine: none})
	t.Cleanup(func() { a.Close(); require.NoError(t, store.Close()) })
	return process{Allocator: a, store: store}
}

// A holder loses its lock before it writes. With fencing it gets another address, without
// it the same one as the next holder: and the checker of the fault test must refuse that.
func TestFencingIsWhatKeepsALateWriterOutAndTheCheckerSeesIt(t *testing.T) {
	for name, blind := range map[string]bool{"fenced": false, "unfenced": true} {
		t.Run(name, func(t *testing.T) {
			endpoint := devstacktest.Etcd(t)
			gate := newGated(blind)
			late, prompt := newGatedProcess(t, endpoint, gate), newProcess(t, endpoint, none)
			uid := prompt.settle(t, manifest.Subnet{CIDR: "10.0.0.0/24", Gateway: "10.0.0.1"})
			var calls []call
			ask := func(p process, server string) call {
				c := call{note: note{Verb: allocate, Server: server, Slots: []int{0}, At: time.Now().UnixNano()}}
				got, err := p.Allocate(context.Background(), uid, []addrspace.Want{{Owner: slotOwner(server, 0)}})
				c.end.judge(err)
				c.back = time.Now().UnixNano()
				if err == nil {
					c.end.Addrs = []netip.Addr{got[0].Addr()}
				}
				return c
			}
			lately := make(chan call)
			go func() { lately <- ask(late, "s1") }()
			<-gate.reached
			_, err := prompt.store.Client().Delete(t.Context(), prompt.store.Key("locks", "ipam", uid, ""), clientv3.WithPrefix())
			require.NoError(t, err)
			calls = append(calls, ask(prompt, "s2"))
			close(gate.going)
			calls = append(calls, <-lately)
			for _, c := range calls {
				require.Equal(t, done, c.end.Ended)
			}
			broken := record(calls).check(time.Minute)
			if !blind {
				require.Empty(t, broken)
				requireConsistent(t, prompt, uid)
				return
			}
			require.Equal(t, []string{"10.0.0.2: Illegal"}, broken)
		})
	}
}
