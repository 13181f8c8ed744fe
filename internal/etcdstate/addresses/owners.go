package addresses

import (
	"context"
	"net/netip"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"burrow.dev/burrow/internal/addrspace"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/etcdstate"
)

// Owned is an address of a network with its owner ("<server uid>/<nic>/<slot>").
type Owned struct {
	NetworkUID, Owner string
	Prefix            netip.Prefix
}

// ServerUID is the uid that the owner starts with; addrspace.GatewayOwner for a gateway.
func (o Owned) ServerUID() string { return serverUID(o.Owner) }

// EachOwner calls fn for every address that has an owner, of all networks, page by page.
func (a *Allocator) EachOwner(ctx context.Context, fn func(Owned) error) error {
	prefix := a.store.Key("ipam", "")
	_, err := a.store.EachPage(ctx, prefix, func(kv *mvccpb.KeyValue) error {
		network, rest, _ := strings.Cut(strings.TrimPrefix(string(kv.Key), prefix), "/")
		owner, ok := strings.CutPrefix(rest, "o/")
		if !ok {
			return nil
		}
		p, err := netip.ParsePrefix(string(kv.Value))
		if err != nil {
			return errs.NewOperator("owner "+owner, "decode address", err, "")
		}
		return fn(Owned{NetworkUID: network, Owner: owner, Prefix: p})
	})
	return etcdstate.Translate(ctx, "networks", "list address owners", err)
}

// Networks lists the networks that are entered in the pools.
func (a *Allocator) Networks(ctx context.Context) ([]addrspace.Entry, error) {
	entries, _, err := a.entries(ctx)
	return entries, err
}
