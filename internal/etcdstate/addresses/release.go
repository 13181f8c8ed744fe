package addresses

import (
	"context"
	"encoding/json"
	"net/netip"
	"strconv"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"burrow.dev/burrow/internal/etcdstate"
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
			for _, r := range batch {
				r.uncertain = r.uncertain || (len(r.release) > 0 && h.unknown)
			}
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

// releaseSome takes addresses back in one transaction. Each is compared with what its two
// keys were read as: somebody else's is never touched.
func (h *hold) releaseSome(ctx context.Context, held []holding) error {
	addrs := make([]netip.Addr, len(held))
	for i, x := range held {
		addrs[i] = x.prefix.Addr()
	}
	state, err := h.read(ctx, nil, addrs)
	if err != nil {
		return err
	}
	rest, err := h.quarantined(ctx)
	if err != nil {
		return err
	}
	cmps := []clientv3.Cmp{state.poolUnchanged(h.k)}
	var ops []clientv3.Op
	freed := map[string]int{}
	for i, x := range held {
		a, kv := addrs[i], state.at[i]
		cmps = append(cmps, etcdstate.Unchanged(x.kv))
		ops = append(ops, clientv3.OpDelete(h.k.owner(x.owner)))
		if kv == nil {
			continue
		}
		o, err := decodeOwned(kv)
		if err != nil {
			return err
		}
		if o.Owner != x.owner {
			continue
		}
		cmps = append(cmps, etcdstate.Unchanged(kv))
		ops = append(ops, clientv3.OpDelete(h.k.addr(a)))
		if rest != nil {
			ops = append(ops, rest(a, x.owner))
		}
		if sp := state.spaceOf(a); sp != nil && sp.Automatic(a) {
			freed[h.k.count(sp.BlockOf(a))]++
		}
	}
	for key, n := range freed {
		cmps = append(cmps, state.unchanged(key))
		ops = append(ops, putCount(key, state.used[key]-n))
	}
	return h.commit(ctx, cmps, ops)
}

// quarantined gives what puts an address into quarantine, with a new lease; nil is none.
func (h *hold) quarantined(ctx context.Context) (func(a netip.Addr, owner string) clientv3.Op, error) {
	if h.quarantine <= 0 {
		return nil, nil
	}
	lease, err := h.store.Client().Grant(ctx, int64((h.quarantine+time.Second-1)/time.Second))
	if err != nil {
		return nil, h.fail(ctx, "quarantine", err)
	}
	now := time.Now().UTC()
	until := now.Add(time.Duration(lease.TTL) * time.Second)
	return func(a netip.Addr, owner string) clientv3.Op {
		note, _ := json.Marshal(owned{Owner: owner, Since: now, Until: until}) // strings and times: no error
		return clientv3.OpPut(h.k.hold(a), string(note), clientv3.WithLease(lease.ID))
	}, nil
}

// putCount writes a block count; a block without addresses has no key.
func putCount(key string, n int) clientv3.Op {
	if n <= 0 {
		return clientv3.OpDelete(key)
	}
	return clientv3.OpPut(key, strconv.Itoa(n))
}
