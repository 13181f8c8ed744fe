package ipam

import (
	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/manifest"
)

// AllocateIn asks for everything a server's NICs need: addresses, MACs, device names.
type AllocateIn struct {
	Server activities.Server `json:"server"`
	NICs   []manifest.NIC    `json:"nics"`
}

// AllocateOut is complete (all ports) or an error. The same owner gets the same answer
// again. Owners of addresses are "<uid>/<nic name>/<slot>".
// Only the first port with a gateway has Gateways filled (one default route a family).
// Network absent → Permanent. Static address taken, or outside → Permanent.
// Pool exhausted but for quarantine → transient; really exhausted → Operator.
type AllocateOut struct {
	Ports []manifest.Port `json:"ports"`
}

// ReleaseIn releases all addresses and MACs of a server, into quarantine. Idempotent.
type ReleaseIn struct {
	Server activities.Server `json:"server"`
	NICs   []manifest.NIC    `json:"nics"`
}

// SettleNetworkIn settles a network's open choices (subnet when none was given, bridge
// and namespace names, gateway addresses reserved under owner "gateway/<slot>") against
// all other networks; overlap in one routing domain → Permanent, naming the other.
type SettleNetworkIn struct {
	Name string               `json:"name"`
	UID  string               `json:"uid"`
	Spec manifest.NetworkSpec `json:"spec"`
}

// SettleNetworkOut is what Status.Network becomes.
type SettleNetworkOut struct {
	Network manifest.NetworkStatus `json:"network"`
}

// ForgetNetworkIn removes all IPAM keys of a network. In use → Permanent with the users.
type ForgetNetworkIn struct {
	Name string `json:"name"`
	UID  string `json:"uid"`
}
