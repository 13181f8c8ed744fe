package network

import (
	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/manifest"
)

// EnsureIn asks for the networks of a server's ports to stand on this host: bridge,
// namespace, gateway addresses, NAT, DNS/DHCP. Takes a reference for the server.
type EnsureIn struct {
	Server activities.Server `json:"server"`
	Ports  []manifest.Port   `json:"ports"`
}

// ReleaseIn drops the server's references; the last one of a network takes down what we
// made on this host. None is success.
type ReleaseIn struct {
	Server activities.Server `json:"server"`
	Ports  []manifest.Port   `json:"ports"`
}

// ProbeIn asks whether a stranger answers for an address (bridge and routed networks only).
type ProbeIn struct {
	Server activities.Server `json:"server"`
	Ports  []manifest.Port   `json:"ports"`
}

// ProbeOut lists addresses that somebody else uses; empty is good.
type ProbeOut struct {
	Taken []string `json:"taken,omitempty"`
}

// WireIn puts the ports of a paused domain on the wire: port on the right bridge with tag
// or trunk, external_ids, rate, port security flows; verified (ofport > 0, link up).
type WireIn struct {
	Server activities.Server `json:"server"`
	Ports  []manifest.Port   `json:"ports"`
}

// WireOut tells whether the guest is off: it has no devices that could be wired.
type WireOut struct {
	Off bool `json:"off,omitempty"`
}

// UnwireIn deletes ports by external_ids and flows by cookie. None is success.
type UnwireIn struct {
	Server activities.Server `json:"server"`
	Ports  []manifest.Port   `json:"ports"`
}

// RemoveIn takes a whole network down on this host (DeleteNetwork). None is success.
type RemoveIn struct {
	Name   string                 `json:"name"`
	UID    string                 `json:"uid"`
	Status manifest.NetworkStatus `json:"status"`
}
