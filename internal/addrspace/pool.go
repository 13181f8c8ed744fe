package addrspace

import (
	"net/netip"
	"slices"

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
	// Reserved is what users have reserved beside the manifest, in order.
	Reserved []Reserved `json:"reserved,omitempty"`
}

// Spaces parses the subnets.
func (e Entry) Spaces() ([]*Space, error) {
	var out []*Space
	for _, s := range e.Network.Subnets {
		sp, err := Parse(s, e.Reserved...)
		if err != nil {
			return nil, err
		}
		out = append(out, sp)
	}
	return out, nil
}

// AllReserved lists what is reserved, by the manifest and by users, in order.
func (e Entry) AllReserved() ([]Reserved, error) {
	out := slices.Clone(e.Reserved)
	for _, s := range e.Network.Subnets {
		more, err := ByManifestIn(s)
		if err != nil {
			return nil, err
		}
		out = append(out, more...)
	}
	sortReserved(out)
	return out, nil
}
