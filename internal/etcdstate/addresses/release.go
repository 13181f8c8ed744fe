package addresses

import (
	"context"
	"strconv"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"burrow.dev/burrow/internal/addrspace"
)

// releaseAll serves the releases of a batch.
func (h *hold) releaseAll(ctx context.Context, batch []*request) error {
	var prefixes []string
	for _, r := range batch {
		prefixes = append(prefixes, r.release...)
	}
	for {
		held, err := h.heldBy(ctx, h.k, prefixes)
		if err != nil {
			return err
		}
		if len(held) == 0 {
			break
		}
		if err := h.releaseSome(ctx, held[:min(len(held), releaseAddresses)]); err != nil {
			return err
		}
	}
	for _, r := range batch {
		if len(r.release) > 0 {
			r.finish(nil)
		}
	}
	return nil
}

// releaseSome takes addresses back in one transaction. Each is compared with the revision
// at which its two keys were written: somebody else's is never touched.
func (h *hold) releaseSome(ctx context.Context, held []holding) error {
	state, err := h.read(ctx, nil)
	if err != nil {
		return err
	}
	var hold []clientv3.OpOption
	if h.quarantine > 0 {
		lease, err := h.store.Client().Grant(ctx, int64((h.quarantine+time.Second-1)/time.Second))
		if err != nil {
			return h.fail(ctx, "quarantine", err)
		}
		hold = append(hold, clientv3.WithLease(lease.ID))
	}
	var cmps []clientv3.Cmp
	var ops []clientv3.Op
	freed := map[string]int{}
	for _, x := range held {
		a := x.prefix.Addr()
		for _, key := range []string{h.k.owner(x.owner), h.k.addr(a)} {
			cmps = append(cmps, clientv3.Compare(clientv3.ModRevision(key), "=", x.revision))
			ops = append(ops, clientv3.OpDelete(key))
		}
		if len(hold) > 0 {
			ops = append(ops, clientv3.OpPut(h.k.hold(a), x.owner, hold...))
		}
		if sp := state.spaceOf(a); sp != nil && sp.Automatic(a) {
			freed[h.k.count(addrspace.BlockOf(a))]++
		}
	}
	for key, n := range freed {
		cmps = append(cmps, state.unchanged(key))
		ops = append(ops, putCount(key, state.used[key]-n))
	}
	return h.commit(ctx, cmps, ops)
}

// putCount writes a block count; a block without addresses has no key.
func putCount(key string, n int) clientv3.Op {
	if n <= 0 {
		return clientv3.OpDelete(key)
	}
	return clientv3.OpPut(key, strconv.Itoa(n))
}
