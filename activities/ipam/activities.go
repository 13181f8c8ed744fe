package ipam

import (
	"context"
	"net/netip"

	"burrow.dev/burrow/internal/addrspace"
	"burrow.dev/burrow/internal/etcdstate"
	"burrow.dev/burrow/manifest"
)

// Registry is what the activities need of etcd (internal/etcdstate): records, and claims
// of names that must be unique.
type Registry interface {
	GetMany(ctx context.Context, kind manifest.Kind, names ...string) ([]manifest.Record, error)
	List(ctx context.Context, kind manifest.Kind) ([]manifest.Record, error)
	OwnOne(ctx context.Context, folder, owner string, names ...string) (string, error)
	Disown(ctx context.Context, folder, owner string, names ...string) error
	Owing(ctx context.Context) (map[string]string, error)
	Owe(ctx context.Context, d etcdstate.Debt) (bool, error)
}

// Pools is what the activities need of the address pools (internal/etcdstate/addresses).
type Pools interface {
	Allocate(ctx context.Context, networkUID string, wants []addrspace.Want) ([]netip.Prefix, error)
	Release(ctx context.Context, networkUID string, ownerPrefixes ...string) error
	Settle(ctx context.Context, uid, name string, choose func([]addrspace.Entry) (manifest.NetworkStatus, error)) (manifest.NetworkStatus, error)
	Forget(ctx context.Context, uid string) error
}

// Activities are the ipam.* activities.
type Activities struct {
	registry Registry
	pools    Pools
}

// New builds the activities.
func New(registry Registry, pools Pools) *Activities {
	return &Activities{registry: registry, pools: pools}
}
