package addrspace

import (
	"net/netip"
	"time"
)

// Usage is how many addresses of a network are in which state, subnet by subnet.
type Usage struct{ Subnets []SubnetUsage }

// SubnetUsage counts the addresses of one subnet, without network, broadcast and gateway
// address. Size = Used + Reserved + Quarantined + Free.
type SubnetUsage struct {
	Subnet netip.Prefix
	// Size is how many servers could have, were none reserved.
	Size        Count
	Used        Count
	Reserved    Count
	Quarantined Count // neither used nor reserved, released a moment ago
	Free        Count
	// Automatic is how many of Free are handed out unasked: those in the subnet's range.
	Automatic Count
}

// State of an address that cannot be had.
type State string

// States.
const (
	StateUsed        State = "used"
	StateReserved    State = "reserved"
	StateQuarantined State = "quarantined"
)

// Holding is an address that somebody has or had, or a range that is reserved.
type Holding struct {
	// First and Last are equal unless State is StateReserved.
	First, Last netip.Addr
	State       State
	// Owner is "<server uid>/<nic>/<slot>", or "gateway/<slot>"; of a reserved range, who
	// reserved it, or ByManifest; of a quarantined address, who had it.
	Owner string
	// Since it is in this state; zero for what the manifest reserves.
	Since time.Time
	// Until is about when a quarantine ends.
	Until time.Time
	// Comment of who reserved it.
	Comment string
}
