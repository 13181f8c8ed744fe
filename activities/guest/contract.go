package guest

import (
	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/manifest"
)

// WaitReadyIn says how far to wait. The address is dialled inside the network's namespace
// on this host; login is with the server's management key, pinned to HostKeys.
type WaitReadyIn struct {
	Server    activities.Server  `json:"server"`
	Ports     []manifest.Port    `json:"ports"`
	Login     string             `json:"login"`
	HostKeys  []string           `json:"hostKeys"`
	Readiness manifest.Readiness `json:"readiness"`
}

// WaitReadyOut tells what was found. Never ready within the activity's time → the
// activity's own timeout; cloud-init error → Operator with cloud-init's text.
type WaitReadyOut struct {
	Address string `json:"address"`           // the one that answered
	Warning string `json:"warning,omitempty"` // cloud-init status degraded
}

// Progress is the heartbeat detail: stage ("tcp", "banner", "login", "cloud-init") and
// the console's last line, cleaned of control characters.
type Progress struct {
	Stage   string `json:"stage"`
	Console string `json:"console,omitempty"`
}
