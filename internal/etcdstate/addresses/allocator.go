package addresses

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"burrow.dev/burrow/internal/addrspace"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/etcdstate"
)

const (
	// DefaultQuarantine keeps a released address from a new owner until neighbours' ARP
	// caches and resolvers have forgotten the old one.
	DefaultQuarantine = time.Minute
	// holdTimeout bounds one hold of a network's lock with all that waits in the queue: the
	// lease of a dead holder has run out by then.
	holdTimeout = 30 * time.Second
)

// Options of an Allocator.
type Options struct {
	// Quarantine of released addresses; 0 is DefaultQuarantine, negative is none. Whole
	// seconds, rounded up.
	Quarantine time.Duration
}

// Allocator hands out addresses. Safe for concurrent use; one a process is enough.
type Allocator struct {
	store      *etcdstate.Store
	quarantine time.Duration

	ctx     context.Context // ends with Close
	cancel  context.CancelFunc
	serving sync.WaitGroup

	mu     sync.Mutex
	queues map[string]*queue
}

// New makes an Allocator. The caller closes it before the store.
func New(store *etcdstate.Store, opts Options) *Allocator {
	a := &Allocator{store: store, quarantine: opts.Quarantine, queues: map[string]*queue{}}
	if a.quarantine == 0 {
		a.quarantine = DefaultQuarantine
	}
	a.ctx, a.cancel = context.WithCancel(context.Background())
	return a
}

// Close ends what is being served; waiting callers get an error.
func (a *Allocator) Close() {
	a.mu.Lock() // submit starts nothing after it has seen this
	a.cancel()
	a.mu.Unlock()
	a.serving.Wait()
}

// Allocate gives every want an address of the network, with its subnet's prefix length, in
// the order asked; all or none (up to 31 wants). The same owner gets the same again.
//
// Errors: errs.ErrNotFound (no such network), addrspace.TakenError, RefusedError, HolderError,
// QuarantineError, ExhaustedError; anything else is transient.
func (a *Allocator) Allocate(ctx context.Context, networkUID string, wants []addrspace.Want) ([]netip.Prefix, error) {
	if len(wants) == 0 {
		return nil, nil
	}
	k := keys{a.store, networkUID}
	for i, w := range wants {
		if slices.ContainsFunc(wants[:i], func(earlier addrspace.Want) bool { return earlier.Owner == w.Owner }) {
			return nil, errs.NewPermanent("owner "+w.Owner, "allocate address", fmt.Errorf("%w: it is asked for twice", errs.ErrInvalid), "")
		}
	}
	have, err := a.holdings(ctx, k, wants)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(have, netip.Prefix{}) {
		return have, nil
	}
	r := newRequest(ctx, wants, nil)
	if err := a.submit(k, r); err != nil {
		return nil, a.nameUsers(ctx, k, err)
	}
	return r.got, nil
}

// nameUsers adds to the error of a full subnet who has its addresses. That reads all owners,
// so it is done when the lock is no longer held.
func (a *Allocator) nameUsers(ctx context.Context, k keys, err error) error {
	var full *addrspace.ExhaustedError
	if !errors.As(err, &full) {
		return err
	}
	users, reading := a.users(ctx, k)
	if reading != nil {
		return reading
	}
	full.Users = users
	return err
}

// Release takes back all addresses whose owner starts with one of the prefixes
// ("<uid>/<nic>/"), into quarantine. What is not owned so is not touched; none is success.
// It looks under the lock even for what seems to have nothing: an allocation whose caller has
// given up may be under way.
func (a *Allocator) Release(ctx context.Context, networkUID string, ownerPrefixes ...string) error {
	if len(ownerPrefixes) == 0 {
		return nil
	}
	k := keys{a.store, networkUID}
	if slices.Contains(ownerPrefixes, "") {
		return errs.NewPermanent("network "+networkUID, "release addresses", fmt.Errorf("%w: an owner without a name", errs.ErrInvalid), "")
	}
	return a.submit(k, newRequest(ctx, nil, ownerPrefixes))
}

// holdings gives what the owners of wants have already; invalid where nothing.
func (a *Allocator) holdings(ctx context.Context, k keys, wants []addrspace.Want) ([]netip.Prefix, error) {
	out := make([]netip.Prefix, 0, len(wants))
	for chunk := range slices.Chunk(wants, etcdstate.MaxOps) {
		ops := make([]clientv3.Op, len(chunk))
		for i, w := range chunk {
			ops[i] = clientv3.OpGet(k.owner(w.Owner))
		}
		resp, err := a.store.Client().Txn(ctx).Then(ops...).Commit()
		if err != nil {
			return nil, etcdstate.Translate(ctx, "network "+k.uid, "read addresses", err)
		}
		for i, r := range resp.Responses {
			var p netip.Prefix
			if kvs := r.GetResponseRange().Kvs; len(kvs) > 0 {
				if p, err = heldPrefix(chunk[i], kvs[0].Value); err != nil {
					return nil, err
				}
			}
			out = append(out, p)
		}
	}
	return out, nil
}

// heldPrefix reads the value of o/<owner> and holds it against what is wanted.
func heldPrefix(w addrspace.Want, value []byte) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(string(value))
	if err != nil {
		return netip.Prefix{}, errs.NewOperator("owner "+w.Owner, "decode address", err, "")
	}
	if w.Static.IsValid() && w.Static != p.Addr() {
		return netip.Prefix{}, &addrspace.HolderError{Owner: w.Owner, Has: p.Addr(), Wants: w.Static}
	}
	return p, nil
}

// holding is an address with its owner, as o/<owner> says.
type holding struct {
	owner  string
	prefix netip.Prefix
	kv     *mvccpb.KeyValue
}

// heldBy lists the addresses of owners that start with one of the prefixes, each once.
func (a *Allocator) heldBy(ctx context.Context, k keys, ownerPrefixes []string) ([]holding, error) {
	if len(ownerPrefixes) == 0 {
		return nil, nil
	}
	var out []holding
	seen := map[string]bool{}
	for chunk := range slices.Chunk(ownerPrefixes, etcdstate.MaxOps) {
		ops := make([]clientv3.Op, len(chunk))
		for i, prefix := range chunk {
			ops[i] = clientv3.OpGet(k.owner(prefix), clientv3.WithPrefix())
		}
		resp, err := a.store.Client().Txn(ctx).Then(ops...).Commit()
		if err != nil {
			return nil, etcdstate.Translate(ctx, "network "+k.uid, "read addresses", err)
		}
		for _, r := range resp.Responses {
			for _, kv := range r.GetResponseRange().Kvs {
				owner := strings.TrimPrefix(string(kv.Key), k.owner(""))
				if seen[owner] {
					continue
				}
				seen[owner] = true
				p, err := netip.ParsePrefix(string(kv.Value))
				if err != nil {
					return nil, errs.NewOperator("owner "+owner, "decode address", err, "")
				}
				out = append(out, holding{owner: owner, prefix: p, kv: kv})
			}
		}
	}
	return out, nil
}
