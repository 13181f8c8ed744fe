package addresses

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go4.org/netipx"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"burrow.dev/burrow/internal/addrspace"
	"burrow.dev/burrow/internal/config"
	"burrow.dev/burrow/internal/etcdstate"
	"burrow.dev/burrow/manifest"
)

// workerEnv holds the orders of a worker process, as JSON.
const workerEnv = "BURROW_TEST_ADDRESS_WORKER"

// orders say what a worker process does.
type orders struct {
	Name       string
	Endpoints  []string
	Prefix     string
	NetworkUID string
	Goroutines int
	Seed       uint64
	// LoseOneIn responses to writes of addresses, after etcd has done what they asked; of
	// all others, which cost the lease of a lock, a tenth as many.
	LoseOneIn int
}

// The network of the fault test. Servers are more than addresses, so that the pool is
// exhausted at times, and few enough that several workers ask for the same one at once; with
// fewer, so much happens to one address at a time that histories can no longer be checked.
var (
	faultSubnets = []manifest.Subnet{
		{CIDR: "10.0.0.0/25", Gateway: "10.0.0.1", Range: "10.0.0.8-10.0.0.67"},
		{CIDR: "fd00::/64", Gateway: "fd00::1", Range: "fd00::10-fd00::4f"},
	}
	faultStatics = netipx.MustParseIPRange("10.0.0.68-10.0.0.91") // asked for by name
	faultHeld    = netipx.MustParseIPRange("10.0.0.60-10.0.0.91") // reserved and unreserved
	faultUsers   = []string{"alice", "bob", "carol"}
)

const (
	faultServers = 200
	// staticSlot is the slot whose address is asked for; 0 and 1 are of the two subnets.
	staticSlot = 2
)

// verb is a call of the Allocator.
type verb string

const (
	allocate  verb = "allocate"
	release   verb = "release"
	reserve   verb = "reserve"
	unreserve verb = "unreserve"
)

// outcome of a call.
type outcome string

const (
	done      outcome = "done"
	unknown   outcome = "unknown"   // etcd was away, or its answer was lost
	exhausted outcome = "exhausted" // or in quarantine
	taken     outcome = "taken"     // Addr by By
	reserved  outcome = "reserved"  // Addr is, so it cannot be asked for
	overlaps  outcome = "overlaps"  // Range is reserved by By
	holds     outcome = "holds"     // the owner has Addr and asked for another
)

// note is one line of a worker's story: a call, or how it ended.
type note struct {
	ID    int // of the call, in this process
	At    int64
	Ended outcome `json:",omitempty"`

	Verb   verb         `json:",omitempty"`
	Server string       `json:",omitempty"` // allocate, release
	Slots  []int        `json:",omitempty"` // allocate
	Static netip.Addr   // allocate, slot staticSlot
	User   string       `json:",omitempty"` // reserve
	First  netip.Addr   // reserve, unreserve, overlaps
	Last   netip.Addr   // the same
	Addrs  []netip.Addr `json:",omitempty"` // done: one a slot
	Addr   netip.Addr   // taken, reserved, holds
	By     string       `json:",omitempty"` // taken, overlaps

	Lease int64 `json:",omitempty"` // the process's lock session may have it
}

func slotOwner(server string, slot int) string { return fmt.Sprintf("%s/eth/%d", server, slot) }

// runWorker calls an Allocator at random until its standard input ends. A call whose outcome
// is unknown is made again until it is known, so that its story has an end unless it is killed.
func runWorker(text string, out io.Writer) error {
	var o orders
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return err
	}
	w := &teller{out: bufio.NewWriter(out)}
	store, err := etcdstate.Open(config.Etcd{Endpoints: o.Endpoints, Prefix: o.Prefix}, etcdstate.Options{
		LockTTL: workerLockTTL, DialOptions: []grpc.DialOption{grpc.WithChainUnaryInterceptor(w.leases, loseResponses(o.LoseOneIn))},
	})
	if err != nil {
		return err
	}
	defer store.Close()
	a := New(store, Options{Quarantine: none})
	defer a.Close()
	stopped, stop := context.WithCancel(context.Background())
	defer stop()
	var wg sync.WaitGroup
	for g := range o.Goroutines {
		random := rand.New(rand.NewPCG(o.Seed, uint64(g)))
		wg.Go(func() {
			for stopped.Err() == nil {
				call := randomCall(random)
				for w.attempt(a, o.NetworkUID, call) == unknown {
				}
			}
		})
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	stop()
	wg.Wait()
	return nil
}

// loseResponses loses one response in n to a write of addresses, and one in 10n to anything
// else, after etcd has done what was asked.
func loseResponses(n int) grpc.UnaryClientInterceptor {
	return func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		err := invoke(ctx, method, req, reply, cc, opts...)
		rate := 10 * n
		if writesAddresses(req) {
			rate = n
		}
		if err == nil && n > 0 && rand.N(rate) == 0 {
			return status.Error(codes.Unavailable, "the response was lost")
		}
		return err
	}
}

// writesAddresses reports whether a request is a transaction that changes addresses.
func writesAddresses(req any) bool {
	txn, ok := req.(*etcdserverpb.TxnRequest)
	return ok && slices.ContainsFunc(txn.Success, func(op *etcdserverpb.RequestOp) bool {
		key := string(op.GetRequestPut().GetKey()) + string(op.GetRequestDeleteRange().GetKey())
		return !strings.Contains(key, "/locks/") && (strings.Contains(key, "/ipam/") || strings.Contains(key, "/pools/"))
	})
}

func randomCall(random *rand.Rand) note {
	n := note{Verb: allocate, Server: fmt.Sprintf("s%d", random.IntN(faultServers))}
	switch dice := random.IntN(100); {
	case dice < 45:
		for slot := range 3 {
			if random.IntN(2) == 0 {
				n.Slots = append(n.Slots, slot)
			}
		}
		if len(n.Slots) == 0 {
			n.Slots = []int{0}
		}
		if n.Slots[len(n.Slots)-1] == staticSlot {
			n.Static = pickFrom(random, faultStatics)
		}
	case dice < 88:
		n.Verb = release
	default:
		n.Verb, n.Server = reserve, ""
		if dice%2 == 0 {
			n.Verb = unreserve
		} else {
			n.User = faultUsers[random.IntN(len(faultUsers))]
		}
		n.First = pickFrom(random, faultHeld)
		n.Last = n.First
		if random.IntN(3) == 0 {
			n.Last = n.First.Next()
		}
	}
	return n
}

func pickFrom(random *rand.Rand, r netipx.IPRange) netip.Addr {
	a := r.From()
	for range random.IntN(int(r.To().As16()[15]-r.From().As16()[15]) + 1) {
		a = a.Next()
	}
	return a
}

// attempt makes a call once, and tells of it before and after.
func (w *teller) attempt(a *Allocator, network string, call note) outcome {
	ctx := context.Background() // what was begun is brought to its end
	id := w.begin(call)
	end := note{ID: id}
	var err error
	switch call.Verb {
	case allocate:
		wants := make([]addrspace.Want, len(call.Slots))
		for i, slot := range call.Slots {
			wants[i] = addrspace.Want{Owner: slotOwner(call.Server, slot), Subnet: slot}
			if slot == staticSlot {
				wants[i].Subnet, wants[i].Static = 0, call.Static
			}
		}
		var got []netip.Prefix
		got, err = a.Allocate(ctx, network, wants)
		for _, prefix := range got {
			end.Addrs = append(end.Addrs, prefix.Addr())
		}
	case release:
		err = a.Release(ctx, network, call.Server+"/")
	case reserve:
		err = a.Reserve(ctx, network, netipx.IPRangeFrom(call.First, call.Last), addrspace.Reservation{By: call.User})
	case unreserve:
		err = a.Unreserve(ctx, network, netipx.IPRangeFrom(call.First, call.Last))
	}
	end.judge(err)
	w.tell(end)
	return end.Ended
}

// judge says what an error means.
func (n *note) judge(err error) {
	var (
		full    *addrspace.ExhaustedError
		held    *addrspace.QuarantineError
		other   *addrspace.TakenError
		refused *addrspace.RefusedError
		overlap *addrspace.ReservedError
		holder  *addrspace.HolderError
	)
	switch {
	case err == nil:
		n.Ended = done
	case errors.As(err, &full), errors.As(err, &held):
		n.Ended = exhausted
	case errors.As(err, &other):
		n.Ended, n.Addr, n.By = taken, other.Addr, other.Owner
	case errors.As(err, &refused):
		n.Ended, n.Addr = reserved, refused.Addr
	case errors.As(err, &overlap):
		n.Ended, n.By, n.First, n.Last = overlaps, overlap.Reserved.By, overlap.Reserved.First, overlap.Reserved.Last
	case errors.As(err, &holder):
		n.Ended, n.Addr = holds, holder.Has
	default:
		n.Ended = unknown
	}
}

// teller writes notes, one a line, each before what comes after it.
type teller struct {
	mu  sync.Mutex
	out *bufio.Writer
	ids int
}

func (w *teller) begin(n note) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ids++
	n.ID = w.ids
	w.write(n)
	return n.ID
}

func (w *teller) tell(n note) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.write(n)
}

func (w *teller) write(n note) {
	n.At = time.Now().UnixNano()
	line, _ := json.Marshal(n)
	_, _ = w.out.Write(append(line, '\n'))
	_ = w.out.Flush()
}

// leases tells of every lease this process takes: a lock's key ends with one.
func (w *teller) leases(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	err := invoke(ctx, method, req, reply, cc, opts...)
	if lease, ok := reply.(*etcdserverpb.LeaseGrantResponse); ok && lease.ID != 0 {
		w.tell(note{Lease: lease.ID})
	}
	return err
}
