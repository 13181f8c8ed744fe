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
	// unknown: nobody knows whether the last transaction succeeded.
	unknown bool
}

// owned is the value of a/<address>, and of q/<address>, where Owner had it, Since is its
// release, and Until about when the lease ends.
type owned struct {
	Owner string    `json:"owner"`
	Since time.Time `json:"since"`
	Until time.Time `json:"until,omitzero"`
}

// reading is a network as it was read under the lock: the pool, cursors and block counts.
type reading struct {
	pool    *mvccpb.KeyValue
	spaces  []*addrspace.Space
	cursors map[string]netip.Addr       // by cursor key
	counts  map[string]*mvccpb.KeyValue // by count key
	used    map[string]int              // by count key
	has     []*mvccpb.KeyValue          // o/<owner>, one a want
	at      []*mvccpb.KeyValue          // a/<address>, one an address
	// resting: some address of the network is in quarantine.
	resting bool
}

// read takes all that a decision needs but the blocks, in one request.
func (h *hold) read(ctx context.Context, wants []addrspace.Want, addrs []netip.Addr) (*reading, error) {
	ops := []clientv3.Op{
		clientv3.OpGet(h.k.pool()),
		clientv3.OpGet(h.k.cursors(), clientv3.WithPrefix()),
		clientv3.OpGet(h.k.counts(), clientv3.WithPrefix()),
		clientv3.OpGet(h.k.held(), clientv3.WithPrefix(), clientv3.WithKeysOnly(), clientv3.WithLimit(1)),
	}
	for _, w := range wants {
		ops = append(ops, clientv3.OpGet(h.k.owner(w.Owner)))
	}
	for _, a := range addrs {
		ops = append(ops, clientv3.OpGet(h.k.addr(a)))
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
	out.resting = len(answers[3].GetResponseRange().Kvs) > 0
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
	for i, r := range answers[4:] {
		var kv *mvccpb.KeyValue
		if kvs := r.GetResponseRange().Kvs; len(kvs) > 0 {
			kv = kvs[0]
		}
		if i < len(wants) {
			out.has = append(out.has, kv)
		} else {
			out.at = append(out.at, kv)
		}
	}
	return out, nil
}

// parsePool gives the subnets of pools/<uid>.
func parsePool(kv *mvccpb.KeyValue) ([]*addrspace.Space, error) {
	entry, err := decodeEntry(kv)
	if err != nil {
		return nil, err
	}
	spaces, err := entry.Spaces()
	if err != nil {
		return nil, errs.NewOperator("network/"+entry.Name, "read subnets", err, "")
	}
	return spaces, nil
}

func decodeEntry(kv *mvccpb.KeyValue) (addrspace.Entry, error) {
	var entry addrspace.Entry
	if err := json.Unmarshal(kv.Value, &entry); err != nil {
		return entry, errs.NewOperator(string(kv.Key), "decode network", err, "")
	}
	return entry, nil
}

func decodeOwned(kv *mvccpb.KeyValue) (owned, error) {
	var o owned
	if err := json.Unmarshal(kv.Value, &o); err != nil {
		return o, errs.NewOperator(string(kv.Key), "decode address", err, "")
	}
	return o, nil
}

// poolUnchanged compares that the network is as it was read.
func (r *reading) poolUnchanged(k keys) clientv3.Cmp {
	if r.pool != nil {
		return etcdstate.Unchanged(r.pool)
	}
	return etcdstate.Absent(k.pool())
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

// commitLast is commit of what ends this hold: it gives the lock back as well. When its
// answer is lost, the next try finds its work done, or the lock lost.
func (h *hold) commitLast(ctx context.Context, cmps []clientv3.Cmp, ops []clientv3.Op) error {
	err := h.commit(ctx, cmps, append(ops, h.held.GiveBack()))
	if err == nil {
		h.held.GivenBack()
	}
	return err
}

// commit runs a transaction that compares the lock as well.
func (h *hold) commit(ctx context.Context, cmps []clientv3.Cmp, ops []clientv3.Op) error {
	cmps = append(cmps, h.held.IsOwner())
	resp, err := h.store.Client().Txn(ctx).If(cmps...).Then(ops...).Else(clientv3.OpGet(h.held.Key())).Commit()
	h.unknown = false
	switch {
	case err != nil:
		err = h.fail(ctx, "write", err)
		h.unknown = errs.ClassOf(err) == errs.Transient // otherwise etcd has refused it
		return err
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
