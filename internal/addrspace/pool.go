package addrspace

import (
	"net/netip"

	"burrow.dev/burrow/manifest"
)

// Want is one address for one owner.
type Want struct {
	// Owner is "<server uid>/<nic>/<slot>": one address each.
	Owner string
	// Static is the address asked for; invalid: the next free one of Subnet, an index of
	// the network's subnets.
	Static netip.Addr
	Subnet int
}

// Entry is a network whose open choices are made, as the address pools know it.
type Entry struct {
	UID     string                 `json:"uid"`
	Name    string                 `json:"name"`
	Network manifest.NetworkStatus `json:"network"`
}
