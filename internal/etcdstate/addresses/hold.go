package addresses

import (
	"context"
	"encoding/json"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"burrow.dev/burrow/internal/addrspace"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/etcdstate"
)

// hold is one hold of a network's lock.
type hold struct {
	*Allocator
	k    keys
	held *etcdstate.Held
	// gaps is how many addresses were free when a block was read, by its count key: fewer
	// than its count says when some are in quarantine.
	gaps map[string]int
}

// owned is the value of a/<address>.
type owned struct {
	Owner string    `json:"owner"`
	Since time.Time `json:"since"`
}

// reading is a network as it was read under the lock: the pool, cursors and block counts.
type reading struct {
	pool    *mvccpb.KeyValue
	spaces  []*addrspace.Space
	cursors map[string]netip.Addr       // by cursor key
	counts  map[string]*mvccpb.KeyValue // by count key
	used    map[string]int              // by count key
	has     []*mvccpb.KeyValue          // o/<owner>, one a want
}

// read takes all that a decision needs but the blocks, in one request.
func (h *hold) read(ctx context.Context, wants []addrspace.Want) (*reading, error) {
	ops := []clientv3.Op{
		clientv3.OpGet(h.k.pool()),
		clientv3.OpGet(h.k.cursors(), clientv3.WithPrefix()),
		clientv3.OpGet(h.k.counts(), clientv3.WithPrefix()),
	}
	for _, w := range wants {
		ops = append(ops, clientv3.OpGet(h.k.owner(w.Owner)))
	}
	resp, err := h.store.Client().Txn(ctx).Then(ops...).Commit()
	if err != nil {
		return nil, h.fail(ctx, "read", err)
	}
	out := &reading{cursors: map[string]netip.Addr{}, counts: map[string]*mvccpb.KeyValue{}, used: map[string]int{}}
	answers := resp.Responses
	if kvs := answers[0].GetResponseRange().Kvs; len(kvs) > 0 {
		out.pool = kvs[0]
		if out.spaces, err = parsePool(kvs[0]); err != nil {
			return nil, err
		}
	}
	for _, kv := range answers[1].GetResponseRange().Kvs {
		if a, ok := parseHexAddr(string(kv.Value)); ok {
			out.cursors[string(kv.Key)] = a
		}
	}
	for _, kv := range answers[2].GetResponseRange().Kvs {
		n, err := strconv.Atoi(string(kv.Value))
		if err != nil {
			return nil, errs.NewOperator(string(kv.Key), "decode count", err, "")
		}
		out.counts[string(kv.Key)], out.used[string(kv.Key)] = kv, n
	}
	for _, r := range answers[3:] {
		var kv *mvccpb.KeyValue
		if kvs := r.GetResponseRange().Kvs; len(kvs) > 0 {
			kv = kvs[0]
		}
		out.has = append(out.has, kv)
	}
	return out, nil
}

// parsePool gives the subnets of pools/<uid>.
func parsePool(kv *mvccpb.KeyValue) ([]*addrspace.Space, error) {
	var entry addrspace.Entry
	if err := json.Unmarshal(kv.Value, &entry); err != nil {
		return nil, errs.NewOperator(string(kv.Key), "decode network", err, "")
	}
	var out []*addrspace.Space
	for _, s := range entry.Network.Subnets {
		sp, err := addrspace.Parse(s)
		if err != nil {
			return nil, errs.NewOperator("network/"+entry.Name, "read subnets", err, "")
		}
		out = append(out, sp)
	}
	return out, nil
}

// unchanged compares that a block count is what was read.
func (r *reading) unchanged(key string) clientv3.Cmp {
	if kv := r.counts[key]; kv != nil {
		return etcdstate.Unchanged(kv)
	}
	return etcdstate.Absent(key)
}

// spaceOf gives the subnet that an address is in.
func (r *reading) spaceOf(a netip.Addr) *addrspace.Space {
	for _, sp := range r.spaces {
		if sp.Prefix.Contains(a) {
			return sp
		}
	}
	return nil
}

// commit runs a transaction that compares the lock as well.
func (h *hold) commit(ctx context.Context, cmps []clientv3.Cmp, ops []clientv3.Op) error {
	cmps = append(cmps, h.held.IsOwner())
	resp, err := h.store.Client().Txn(ctx).If(cmps...).Then(ops...).Else(clientv3.OpGet(h.held.Key())).Commit()
	switch {
	case err != nil:
		return h.fail(ctx, "write", err)
	case resp.Succeeded:
		return nil
	case resp.Responses[0].GetResponseRange().Count == 0:
		return errLockLost
	}
	return errChanged
}

func (h *hold) fail(ctx context.Context, action string, err error) error {
	return etcdstate.Translate(ctx, "network "+h.k.uid, action+" addresses", err)
}

// serverUID gives the first part of an owner: a server's uid, or addrspace.GatewayOwner.
func serverUID(owner string) string {
	uid, _, _ := strings.Cut(owner, "/")
	return uid
}
