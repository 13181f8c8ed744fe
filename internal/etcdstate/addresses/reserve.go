package addresses

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go4.org/netipx"

	"burrow.dev/burrow/internal/addrspace"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/etcdstate"
)

const (
	// maxNote is the size in bytes of who reserved addresses and why: a line, so that
	// hundreds of reservations fit into a network's entry.
	maxNote = 400
	// neighbours is how many owners of a range are read: its gateway, and one to name.
	neighbours = 2
)

// Reserve takes a range of one subnet out of what is handed out, asked for or not, until
// Unreserve or the end of the network. Network, broadcast and gateway address may be in it;
// they stay what they are. It costs one entry, whatever its size. note.Since defaults to now.
//
// The same range again by the same person is success and takes the new comment. Errors:
// errs.ErrNotFound (no such network), addrspace.TakenError (a server has one of them),
// ReservedError (somebody has reserved one), RefusedError (not of a subnet, or never handed
// out anyway), errs.ErrInvalid; anything else is transient.
func (a *Allocator) Reserve(ctx context.Context, networkUID string, r netipx.IPRange, note addrspace.Reservation) error {
	k := keys{a.store, networkUID}
	r = netipx.IPRangeFrom(r.From().Unmap(), r.To().Unmap())
	if note.By == "" {
		return errs.NewPermanent("addresses "+r.String(), "reserve", fmt.Errorf("%w: nobody is named who reserves them", errs.ErrInvalid), "say who")
	}
	if size := len(note.By) + len(note.Comment); size > maxNote {
		return errs.NewPermanent("addresses "+r.String(), "reserve",
			fmt.Errorf("%w: comment and name of who reserves them have %d bytes, and at most %d are taken", errs.ErrInvalid, size, maxNote), "write another comment, a shorter one")
	}
	if note.Since.IsZero() {
		note.Since = time.Now().UTC()
	}
	return a.changeReserved(ctx, k, r, "reserve", func(list []addrspace.Reserved, owner *holding) ([]addrspace.Reserved, error) {
		changed, err := addrspace.Hold(list, r, note)
		if err == nil && owner != nil {
			err = &addrspace.TakenError{Addr: owner.prefix.Addr(), Owner: owner.owner}
		}
		return changed, err
	})
}

// Unreserve undoes Reserve for a range: whole reservations, or the part of one; the rest of
// it stays. What was not reserved so, or by the manifest, is not touched; none is success.
// Errors: errs.ErrNotFound, addrspace.RefusedError (not of a subnet, or never handed out
// anyway).
func (a *Allocator) Unreserve(ctx context.Context, networkUID string, r netipx.IPRange) error {
	r = netipx.IPRangeFrom(r.From().Unmap(), r.To().Unmap())
	return a.changeReserved(ctx, keys{a.store, networkUID}, r, "unreserve", func(list []addrspace.Reserved, _ *holding) ([]addrspace.Reserved, error) {
		return addrspace.Drop(list, r), nil
	})
}

// changeReserved changes the list of what users have reserved, under the lock. No address
// with an owner ever is in it, so block counts, which leave reserved addresses out, stay right.
func (a *Allocator) changeReserved(ctx context.Context, k keys, r netipx.IPRange, action string, change func([]addrspace.Reserved, *holding) ([]addrspace.Reserved, error)) error {
	object := "addresses " + r.String()
	if !r.IsValid() {
		return errs.NewPermanent(object, action, fmt.Errorf("%w range", errs.ErrInvalid), "")
	}
	return a.underLock(ctx, k, action+" addresses", func(h *hold) error {
		pool, owner, rev, err := h.readRange(ctx, r)
		if err != nil {
			return err
		}
		if pool == nil {
			return errs.NewPermanent("network "+k.uid, action+" addresses", errs.ErrNotFound, "")
		}
		entry, err := decodeEntry(pool)
		if err != nil {
			return err
		}
		if err := reservable(entry, r); err != nil {
			return err
		}
		changed, err := change(entry.Reserved, owner)
		if err != nil || slices.Equal(changed, entry.Reserved) {
			return err
		}
		entry.Reserved = changed
		value, err := json.Marshal(entry)
		if err != nil || len(value) >= etcdstate.MaxValue {
			return errs.NewPermanent("network/"+entry.Name, action+" addresses",
				fmt.Errorf("%w: too many reservations (%d)", errs.ErrNoSpace, len(changed)), "reserve fewer and larger ranges")
		}
		return h.commit(ctx,
			[]clientv3.Cmp{etcdstate.Unchanged(pool), clientv3.Compare(clientv3.ModRevision(k.addr(r.From())), "<", rev+1).WithRange(after(k.addr(r.To())))},
			[]clientv3.Op{clientv3.OpPut(k.pool(), string(value))})
	})
}

// after is the end of a range of keys whose last one is key.
func after(key string) string { return key + "\x00" }

// readRange reads the network, and one owner of an address in a range, its gateway left out.
func (h *hold) readRange(ctx context.Context, r netipx.IPRange) (pool *mvccpb.KeyValue, owner *holding, rev int64, err error) {
	resp, err := h.store.Client().Txn(ctx).Then(
		clientv3.OpGet(h.k.pool()),
		clientv3.OpGet(h.k.addr(r.From()), clientv3.WithRange(after(h.k.addr(r.To()))), clientv3.WithLimit(neighbours)),
	).Commit()
	if err != nil {
		return nil, nil, 0, h.fail(ctx, "read", err)
	}
	if kvs := resp.Responses[0].GetResponseRange().Kvs; len(kvs) > 0 {
		pool = kvs[0]
	}
	for _, kv := range resp.Responses[1].GetResponseRange().Kvs {
		o, err := decodeOwned(kv)
		if err != nil {
			return nil, nil, 0, err
		}
		addr, ok := h.k.addrOf(string(kv.Key))
		if !ok || strings.HasPrefix(o.Owner, addrspace.GatewayOwner+"/") {
			continue
		}
		owner = &holding{owner: o.Owner, prefix: netip.PrefixFrom(addr, addr.BitLen())}
		break
	}
	return pool, owner, resp.Header.Revision, nil
}

// reservable looks at a range as if users had reserved nothing, so that the same range gets
// the same answer again.
func reservable(entry addrspace.Entry, r netipx.IPRange) error {
	entry.Reserved = nil
	spaces, err := entry.Spaces()
	if err != nil {
		return errs.NewOperator("network/"+entry.Name, "read subnets", err, "")
	}
	for _, sp := range spaces {
		if sp.Prefix.Contains(r.From()) {
			return sp.Reservable(r)
		}
	}
	return &addrspace.RefusedError{Addr: r.From(), Why: "it is in none of the network's subnets"}
}
