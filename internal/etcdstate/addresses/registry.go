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

	"burrow.dev/burrow/internal/addrspace"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/etcdstate"
	"burrow.dev/burrow/manifest"
)

// usersShown is how many of a network's users an error names.
const usersShown = 5

// Settle enters a network, with its gateways as owners of their addresses. choose gets all
// other networks that are entered and makes the open choices; when another network is
// entered meanwhile, it is asked again. A network that is entered stays as it was.
func (a *Allocator) Settle(ctx context.Context, uid, name string, choose func(others []addrspace.Entry) (manifest.NetworkStatus, error)) (manifest.NetworkStatus, error) {
	object := "network/" + name
	var out manifest.NetworkStatus
	err := etcdstate.RetryConflict(ctx, object, "settle", func() (bool, error) {
		entries, rev, err := a.entries(ctx)
		if err != nil {
			return false, err
		}
		if i := slices.IndexFunc(entries, func(e addrspace.Entry) bool { return e.UID == uid }); i >= 0 {
			out = entries[i].Network
			return true, nil
		}
		if out, err = choose(entries); err != nil {
			return false, err
		}
		return a.enter(ctx, addrspace.Entry{UID: uid, Name: name, Network: out}, rev)
	})
	return out, err
}

// enter writes an entry and its gateways, if no network was entered or changed after rev.
func (a *Allocator) enter(ctx context.Context, e addrspace.Entry, rev int64) (bool, error) {
	k := keys{a.store, e.UID}
	object := "network/" + e.Name
	value, err := json.Marshal(e)
	if err != nil || len(value) >= etcdstate.MaxValue {
		return false, errs.NewPermanent(object, "settle", fmt.Errorf("%w: too many subnets or reserved ranges (%d bytes)", errs.ErrInvalid, len(value)), "")
	}
	ops := []clientv3.Op{clientv3.OpPut(k.pool(), string(value))}
	for i, s := range e.Network.Subnets {
		sp, err := addrspace.Parse(s)
		if err != nil {
			return false, errs.NewPermanent(object, "settle", err, "")
		}
		if s.Gateway == "" || s.Gateway == addrspace.GatewayNone {
			continue
		}
		gateway := netip.MustParseAddr(s.Gateway).Unmap() // parseSpace has read it
		owner := fmt.Sprintf("%s/%d", addrspace.GatewayOwner, i)
		note, err := json.Marshal(owned{Owner: owner, Since: time.Now().UTC()})
		if err != nil {
			return false, errs.NewPermanent(object, "settle", err, "")
		}
		ops = append(ops, clientv3.OpPut(k.addr(gateway), string(note)),
			clientv3.OpPut(k.owner(owner), netip.PrefixFrom(gateway, sp.Prefix.Bits()).String()))
	}
	if len(ops) > etcdstate.MaxOps {
		return false, errs.NewPermanent(object, "settle", fmt.Errorf("%w: too many subnets", errs.ErrInvalid), "use several networks")
	}
	resp, err := a.store.Client().Txn(ctx).
		If(etcdstate.NothingNewer(a.store.Key("pools", ""), rev)).Then(ops...).Commit()
	if err != nil {
		return false, etcdstate.Translate(ctx, object, "settle", err)
	}
	return resp.Succeeded, nil
}

// entries reads all networks that are entered, and the revision they were read at.
func (a *Allocator) entries(ctx context.Context) ([]addrspace.Entry, int64, error) {
	resp, err := a.store.Client().Get(ctx, a.store.Key("pools", ""), clientv3.WithPrefix())
	if err != nil {
		return nil, 0, etcdstate.Translate(ctx, "networks", "read address pools", err)
	}
	var out []addrspace.Entry
	for _, kv := range resp.Kvs {
		var e addrspace.Entry
		if err := json.Unmarshal(kv.Value, &e); err != nil {
			return nil, 0, errs.NewOperator(string(kv.Key), "decode network", err, "")
		}
		out = append(out, e)
	}
	return out, resp.Header.Revision, nil
}

// Forget removes all keys of a network under its lock, what users have reserved in it
// included. Owners other than its gateways, or references of a host:
// *addrspace.InUseError, and nothing is changed. None there is success.
func (a *Allocator) Forget(ctx context.Context, uid string) error {
	k := keys{a.store, uid}
	refs := a.store.Key("refs", uid, "")
	return a.underLock(ctx, k, "forget addresses", func(h *hold) error {
		users, rev, err := a.owners(ctx, k)
		if err != nil {
			return err
		}
		needed, err := a.store.References(ctx, uid, "")
		if err != nil {
			return err
		}
		for _, owner := range needed {
			if !slices.ContainsFunc(users, func(u addrspace.User) bool { return u.UID == owner }) {
				users = append(users, addrspace.User{UID: owner})
			}
		}
		if len(users) > 0 {
			return &addrspace.InUseError{Users: users}
		}
		return h.commit(ctx,
			[]clientv3.Cmp{etcdstate.NothingNewer(k.addrs(), rev), etcdstate.NothingNewer(refs, rev)},
			[]clientv3.Op{clientv3.OpDelete(k.all(), clientv3.WithPrefix()), clientv3.OpDelete(k.pool())})
	})
}

// users names the biggest users of a network.
func (a *Allocator) users(ctx context.Context, k keys) ([]addrspace.User, error) {
	users, _, err := a.owners(ctx, k)
	return users[:min(len(users), usersShown)], err
}

// owners counts addresses by server, biggest first, without the gateways.
func (a *Allocator) owners(ctx context.Context, k keys) ([]addrspace.User, int64, error) {
	counts := map[string]int{}
	prefix := k.owner("")
	rev, err := a.store.EachPage(ctx, prefix, func(kv *mvccpb.KeyValue) error {
		if uid := serverUID(strings.TrimPrefix(string(kv.Key), prefix)); uid != addrspace.GatewayOwner {
			counts[uid]++
		}
		return nil
	})
	if err != nil {
		return nil, 0, etcdstate.Translate(ctx, "network "+k.uid, "list users", err)
	}
	var out []addrspace.User
	for uid, n := range counts {
		out = append(out, addrspace.User{UID: uid, Count: n})
	}
	slices.SortFunc(out, func(a, b addrspace.User) int {
		if a.Count != b.Count {
			return b.Count - a.Count
		}
		return strings.Compare(a.UID, b.UID)
	})
	return out, rev, nil
}
