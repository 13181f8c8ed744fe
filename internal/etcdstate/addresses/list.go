package addresses

import (
	"context"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go4.org/netipx"

	"burrow.dev/burrow/internal/addrspace"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/etcdstate"
)

// listPage is how many keys one request of a listing reads: bounded memory on both sides.
const listPage = 1000

// Usage counts the addresses of a network, subnet by subnet, at one revision. It costs a
// few requests, and one for each thousand addresses in quarantine. errs.ErrNotFound: no
// such network.
func (a *Allocator) Usage(ctx context.Context, networkUID string) (addrspace.Usage, error) {
	k := keys{a.store, networkUID}
	entry, rev, err := a.entry(ctx, k)
	if err != nil {
		return addrspace.Usage{}, err
	}
	spaces, err := entry.Spaces()
	if err != nil {
		return addrspace.Usage{}, errs.NewOperator("network/"+entry.Name, "read subnets", err, "")
	}
	ops := []clientv3.Op{clientv3.OpGet(k.counts(), clientv3.WithPrefix(), clientv3.WithRev(rev))}
	for _, sp := range spaces {
		ops = append(ops, clientv3.OpGet(k.addr(sp.Prefix.Addr()), clientv3.WithRange(after(k.addr(netipx.PrefixLastIP(sp.Prefix)))),
			clientv3.WithCountOnly(), clientv3.WithRev(rev)))
	}
	resp, err := a.store.Client().Txn(ctx).Then(ops...).Commit() // subnets are fewer than operations: see enter
	if err != nil {
		return addrspace.Usage{}, etcdstate.Translate(ctx, "network/"+entry.Name, "count addresses", err)
	}
	u := newTally(k, spaces)
	for i, r := range resp.Responses[1:] {
		used := addrspace.Count(r.GetResponseRange().Count)
		if g := entry.Network.Subnets[i].Gateway; g != "" && g != addrspace.GatewayNone {
			used = used.Less(1)
		}
		u.subnets[i].Used = used
	}
	for _, kv := range resp.Responses[0].GetResponseRange().Kvs {
		u.block(kv)
	}
	quarantine := newListing(a, k.held(), rev, clientv3.WithKeysOnly())
	for {
		kv, err := quarantine.next(ctx)
		if err != nil {
			return addrspace.Usage{}, etcdstate.Translate(ctx, "network/"+entry.Name, "count addresses", err)
		}
		if kv == nil {
			return u.sum(), nil
		}
		u.quarantined(kv)
	}
}

// EachAddress calls each for everything of a network that cannot be had, in the order of
// addresses, all as of one revision, page by page: used and quarantined addresses one by
// one, reserved ones as ranges. An error of each ends it and is returned. errs.ErrNotFound: no
// such network.
func (a *Allocator) EachAddress(ctx context.Context, networkUID string, each func(addrspace.Holding) error) error {
	k := keys{a.store, networkUID}
	entry, rev, err := a.entry(ctx, k)
	if err != nil {
		return err
	}
	object := "network/" + entry.Name
	spaces, err := entry.Spaces()
	if err != nil {
		return errs.NewOperator(object, "read subnets", err, "")
	}
	reserved, err := entry.AllReserved()
	if err != nil {
		return errs.NewOperator(object, "read subnets", err, "")
	}
	used, quarantine := newListing(a, k.addrs(), rev), newListing(a, k.held(), rev)
	for {
		u, err := used.peek(ctx)
		if err != nil {
			return etcdstate.Translate(ctx, object, "list addresses", err)
		}
		q, err := quarantine.peek(ctx)
		if err != nil {
			return etcdstate.Translate(ctx, object, "list addresses", err)
		}
		from, state := used, addrspace.StateUsed
		if u == nil || (q != nil && k.less(q, u)) {
			from, state = quarantine, addrspace.StateQuarantined
		}
		kv, _ := from.next(ctx) // peek has read it
		var holding addrspace.Holding
		if kv != nil {
			if holding, err = k.holding(kv, state); err != nil {
				return err
			}
		}
		for len(reserved) > 0 && (kv == nil || !holding.First.Less(reserved[0].First)) {
			if err := each(reservedHolding(reserved[0])); err != nil {
				return err
			}
			reserved = reserved[1:]
		}
		if kv == nil {
			return nil
		}
		if i := k.subnet(spaces, kv); state == addrspace.StateQuarantined && (i < 0 || spaces[i].Refuses(holding.First) != "") {
			continue // reserved meanwhile
		}
		if err := each(holding); err != nil {
			return err
		}
	}
}

func reservedHolding(r addrspace.Reserved) addrspace.Holding {
	return addrspace.Holding{First: r.First, Last: r.Last, State: addrspace.StateReserved, Owner: r.By, Since: r.Since, Comment: r.Comment}
}

// holding reads an a/ or q/ key.
func (k keys) holding(kv *mvccpb.KeyValue, state addrspace.State) (addrspace.Holding, error) {
	addr, ok := k.addrOf(string(kv.Key))
	if !ok {
		return addrspace.Holding{}, errs.NewOperator(string(kv.Key), "decode address", errs.ErrInvalid, "")
	}
	o, err := decodeOwned(kv)
	return addrspace.Holding{First: addr, Last: addr, State: state, Owner: o.Owner, Since: o.Since, Until: o.Until}, err
}

// less compares the addresses of two keys of folders that have names of one length.
func (k keys) less(a, b *mvccpb.KeyValue) bool {
	return string(a.Key[len(k.addrs()):]) < string(b.Key[len(k.addrs()):])
}

// subnet gives the index of the subnet that a key's address is in, or -1.
func (k keys) subnet(spaces []*addrspace.Space, kv *mvccpb.KeyValue) int {
	addr, ok := k.addrOf(string(kv.Key))
	for i, sp := range spaces {
		if ok && sp.Prefix.Contains(addr) {
			return i
		}
	}
	return -1
}

// entry reads a network and the revision it was read at.
func (a *Allocator) entry(ctx context.Context, k keys) (addrspace.Entry, int64, error) {
	resp, err := a.store.Client().Get(ctx, k.pool())
	if err != nil {
		return addrspace.Entry{}, 0, etcdstate.Translate(ctx, "network "+k.uid, "read addresses", err)
	}
	if len(resp.Kvs) == 0 {
		return addrspace.Entry{}, 0, errs.NewPermanent("network "+k.uid, "read addresses", errs.ErrNotFound, "")
	}
	entry, err := decodeEntry(resp.Kvs[0])
	return entry, resp.Header.Revision, err
}

// listing reads the keys of a folder in order, as of one revision, a page at a time.
type listing struct {
	client    *clientv3.Client
	from, end string
	opts      []clientv3.OpOption
	page      []*mvccpb.KeyValue
	more      bool
}

func newListing(a *Allocator, folder string, rev int64, opts ...clientv3.OpOption) *listing {
	end := clientv3.GetPrefixRangeEnd(folder)
	opts = append(opts, clientv3.WithRange(end), clientv3.WithLimit(listPage), clientv3.WithRev(rev))
	return &listing{client: a.store.Client(), from: folder, end: end, opts: opts, more: true}
}

// peek gives the next key, nil after the last.
func (l *listing) peek(ctx context.Context) (*mvccpb.KeyValue, error) {
	if len(l.page) == 0 && l.more {
		resp, err := l.client.Get(ctx, l.from, l.opts...)
		if err != nil {
			return nil, err
		}
		if l.page, l.more = resp.Kvs, resp.More; len(l.page) > 0 {
			l.from = after(string(l.page[len(l.page)-1].Key))
		}
	}
	if len(l.page) == 0 {
		return nil, nil
	}
	return l.page[0], nil
}

// next is peek, and goes on.
func (l *listing) next(ctx context.Context) (*mvccpb.KeyValue, error) {
	kv, err := l.peek(ctx)
	if kv != nil {
		l.page = l.page[1:]
	}
	return kv, err
}
