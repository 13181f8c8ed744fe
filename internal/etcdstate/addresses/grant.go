package addresses

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"burrow.dev/burrow/internal/addrspace"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/etcdstate"
)

// item is one want of a request that has no address yet.
type item struct {
	req   *request
	index int
	want  addrspace.Want
}

// allocateAll serves the allocations of a batch, a transaction for as many as fit. Every
// round hands out an address, fails a request, or gets to know blocks it had not read.
func (h *hold) allocateAll(ctx context.Context, batch []*request) error {
	h.gaps = map[string]int{}
	for {
		items := outstanding(batch)
		if len(items) == 0 {
			return nil
		}
		if err := h.allocateSome(ctx, batch, items); err != nil {
			return err
		}
	}
}

// lacking counts what a batch has not got yet.
func lacking(batch []*request) int {
	n := 0
	for _, r := range unfinished(batch) {
		for _, got := range r.got {
			if !got.IsValid() {
				n++
			}
		}
	}
	return n
}

// outstanding lists wants without an address, of whole requests, up to txnAddresses; a
// request bigger than wholeRequest is cut. Of several requests for the same owner the first
// is listed: the others find its answer.
func outstanding(batch []*request) []item {
	var out []item
	owners := map[string]bool{}
	for _, r := range unfinished(batch) {
		if slices.ContainsFunc(r.wants, func(w addrspace.Want) bool { return owners[w.Owner] }) {
			continue
		}
		for _, w := range r.wants {
			owners[w.Owner] = true
		}
		var own []item
		for i, w := range r.wants {
			if !r.got[i].IsValid() && len(own) < wholeRequest {
				own = append(own, item{r, i, w})
			}
		}
		if len(out)+len(own) > txnAddresses {
			return out
		}
		out = append(out, own...)
	}
	return out
}

// allocateSome reads, decides, and writes one transaction. Requests that cannot be served
// are finished with their error; what did not fit stays outstanding.
func (h *hold) allocateSome(ctx context.Context, batch []*request, items []item) error {
	wants := make([]addrspace.Want, len(items))
	for i, it := range items {
		wants[i] = it.want
	}
	state, err := h.read(ctx, wants, nil)
	if err != nil {
		return err
	}
	if state.pool == nil {
		for _, it := range items {
			it.req.fail(errs.NewPermanent("network "+h.k.uid, "allocate address", errs.ErrNotFound, ""))
		}
		return nil
	}
	items = adopt(items, state.has)
	p := newPlan(h.k, state, h.gaps, items)
	if err := h.look(ctx, p); err != nil {
		return err
	}
	p.assign(time.Now().UTC())
	for _, it := range p.exhausted {
		sp := state.spaces[it.want.Subnet]
		it.req.fail(&addrspace.ExhaustedError{Subnet: sp.Prefix, Size: sp.Size().String()})
	}
	if len(p.granted) == 0 {
		return nil
	}
	cmps, ops := p.transaction()
	commit := h.commit
	if len(p.granted) == lacking(batch) {
		commit = h.commitLast
	}
	if err := commit(ctx, cmps, ops); err != nil {
		for _, g := range p.granted {
			g.item.req.uncertain = g.item.req.uncertain || h.unknown
		}
		return err
	}
	for _, g := range p.granted {
		g.item.req.give(g.item.index, g.prefix)
	}
	return nil
}

// fail finishes a request, once.
func (r *request) fail(err error) {
	if !r.finished() {
		r.finish(err)
	}
}

// give notes an address, and finishes the request with its last one.
func (r *request) give(index int, p netip.Prefix) {
	r.got[index] = p
	for _, got := range r.got {
		if !got.IsValid() {
			return
		}
	}
	r.fail(nil)
}

// adopt gives those their address who have it already, and returns the rest.
func adopt(items []item, has []*mvccpb.KeyValue) []item {
	var rest []item
	for i, it := range items {
		if has[i] == nil {
			rest = append(rest, it)
			continue
		}
		p, err := heldPrefix(it.want, has[i].Value)
		if err != nil {
			it.req.fail(err)
			continue
		}
		it.req.give(it.index, p)
	}
	return rest
}

// look reads in one request what the plan must know: the blocks it chose, and the
// addresses that were asked for.
func (h *hold) look(ctx context.Context, p *plan) error {
	var ops []clientv3.Op
	for _, a := range p.statics {
		ops = append(ops, clientv3.OpGet(h.k.addr(a)), clientv3.OpGet(h.k.hold(a), clientv3.WithKeysOnly()))
	}
	for _, b := range p.blocks {
		for _, folder := range []string{h.k.addrs(), h.k.held()} {
			ops = append(ops, clientv3.OpGet(folder+hexBlock(b), clientv3.WithPrefix(), clientv3.WithKeysOnly()))
		}
	}
	if len(ops) == 0 {
		return nil
	}
	resp, err := h.store.Client().Txn(ctx).Then(ops...).Commit()
	if err != nil {
		return h.fail(ctx, "read", err)
	}
	answers := resp.Responses
	for _, a := range p.statics {
		if kvs := answers[0].GetResponseRange().Kvs; len(kvs) > 0 {
			o, err := decodeOwned(kvs[0])
			if err != nil {
				return err
			}
			p.owners[a] = o.Owner
		}
		p.quarantined[a] = answers[1].GetResponseRange().Count > 0
		answers = answers[2:]
	}
	for _, b := range p.blocks {
		busy := map[netip.Addr]bool{}
		for _, answer := range answers[:2] {
			for _, kv := range answer.GetResponseRange().Kvs {
				key := string(kv.Key)
				a, ok := parseHexAddr(key[len(key)-32:])
				if !ok {
					return errs.NewOperator(key, "decode address", fmt.Errorf("not an address"), "")
				}
				busy[a] = true
			}
		}
		p.busy[b] = busy
		answers = answers[2:]
	}
	return nil
}

// transaction writes what was granted, if nothing of what the plan saw has changed.
func (p *plan) transaction() (cmps []clientv3.Cmp, ops []clientv3.Op) {
	cmps = append(cmps, etcdstate.Unchanged(p.state.pool))
	for _, g := range p.granted {
		a, o := p.k.addr(g.prefix.Addr()), p.k.owner(g.item.want.Owner)
		cmps = append(cmps, etcdstate.Absent(a), etcdstate.Absent(o), etcdstate.Absent(p.k.hold(g.prefix.Addr())))
		ops = append(ops, clientv3.OpPut(a, g.value), clientv3.OpPut(o, g.prefix.String()))
	}
	for key, n := range p.added {
		cmps = append(cmps, p.state.unchanged(key))
		ops = append(ops, putCount(key, p.state.used[key]+n))
	}
	for key, next := range p.cursors {
		ops = append(ops, clientv3.OpPut(key, hexAddr(next)))
	}
	return cmps, ops
}
