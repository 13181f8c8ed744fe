package network

import (
	"context"
	"log/slog"
	"net"

	"burrow.dev/burrow/internal/hostnet"
	"burrow.dev/burrow/internal/keylock"
	"burrow.dev/burrow/internal/ovsx"
	"burrow.dev/burrow/manifest"
)

// Records is what of the state in etcd these activities use.
type Records interface {
	// Get reads a record; errors.Is errs.ErrNotFound when there is none.
	Get(ctx context.Context, kind manifest.Kind, name string) (manifest.Record, error)
	List(ctx context.Context, kind manifest.Kind) ([]manifest.Record, error)
	// AddReference, DropReference and References count who needs a network on a host.
	AddReference(ctx context.Context, networkUID, host, owner string) error
	DropReference(ctx context.Context, networkUID, host, owner string) (remaining int, err error)
	References(ctx context.Context, networkUID, host string) ([]string, error)
}

// Switch is what of Open vSwitch these activities use.
type Switch interface {
	HostDatapath() string
	Bridge(ctx context.Context, name string) (ovsx.Bridge, error)
	Bridges(ctx context.Context, key, value string) ([]ovsx.Bridge, error)
	AwaitBridge(ctx context.Context, name string) (ovsx.Bridge, error)
	Port(ctx context.Context, name string) (ovsx.Port, error)
	Ports(ctx context.Context, key, value string) ([]ovsx.Port, error)
	AwaitPort(ctx context.Context, name string) (ovsx.Port, error)
	Transact(ctx context.Context, object, action string, change func(*ovsx.Tx)) error
	SetBaseFlows(ctx context.Context, bridge string, trusted ...int) error
	SetPortFlows(ctx context.Context, bridge string, ofport int, cookie uint64, r ovsx.Rules) error
	DeletePortFlows(ctx context.Context, bridge string, ofport int, cookie uint64) error
}

// Stack is what of the host's own networking these activities use.
type Stack interface {
	Ensure(ctx context.Context, n hostnet.Network) error
	Remove(ctx context.Context, uid string) error
	SetNames(ctx context.Context, uid, owner string, names []hostnet.Name) error
	DropNames(ctx context.Context, uid, owner string) error
	Guard(ctx context.Context, device string) error
	Unguard(ctx context.Context, device string) error
	DeviceIndex(name string) (int, error)
	ForeignDevice(name string) (bool, error)
	Dial(ctx context.Context, namespace, address string) (net.Conn, error)
}

// Activities are the network activities of one host.
type Activities struct {
	host    string
	records Records
	sw      Switch
	stack   Stack
	log     *slog.Logger
	// networks orders what is done to one network on this host: a reference and what
	// stands for it change together.
	networks keylock.Locks
}

// New makes the activities of a host, named as its task queue is.
func New(host string, records Records, sw Switch, stack Stack, log *slog.Logger) *Activities {
	return &Activities{host: host, records: records, sw: sw, stack: stack, log: log.With("host", host)}
}
