package domain

import (
	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/manifest"
)

// StartIn defines a domain (UUID derived from the uid, metadata element with uid and name)
// and starts it with its CPUs paused. Running already as asked → success.
type StartIn struct {
	Server   activities.Server `json:"server"`
	CPU      int               `json:"cpu"`
	Memory   int               `json:"memory"` // MiB
	Disks    []manifest.Disk   `json:"disks"`
	Ports    []manifest.Port   `json:"ports"`
	Seed     string            `json:"seed"`
	Firmware string            `json:"firmware"`
}

// StartOut names the domain.
type StartOut struct {
	UUID string `json:"uuid"`
	// State as libvirt has it after the call: "paused", or "running" when it ran already.
	State string `json:"state"`
}

// ResumeIn lets the CPUs run. Running already → success; not there or off → transient.
type ResumeIn struct {
	Server activities.Server `json:"server"`
}

// ShutdownIn powers off by ACPI, then by force after GraceSeconds (heartbeats). Off → success.
type ShutdownIn struct {
	Server       activities.Server `json:"server"`
	GraceSeconds int               `json:"graceSeconds"`
}

// RemoveIn destroys, waits until off, undefines with every flag; each part stands alone.
// A domain of that name with another UUID is not touched. None is success.
type RemoveIn struct {
	Server activities.Server `json:"server"`
}

// LookIn asks how a server's domain stands.
type LookIn struct {
	Server activities.Server `json:"server"`
}

// LookOut is libvirt's state ("running", "paused", "shutoff", …) and reason ("ioerror").
type LookOut struct {
	Found  bool   `json:"found"`
	State  string `json:"state,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// PlugIn plugs disks into a running domain, or unplugs them. Off, or none → success.
type PlugIn struct {
	Server activities.Server `json:"server"`
	Disks  []manifest.Disk   `json:"disks"`
}

// GrowIn makes a disk of the server's own at least GiB large, also while it is in use.
type GrowIn struct {
	Server activities.Server `json:"server"`
	Disk   manifest.Disk     `json:"disk"`
	GiB    int               `json:"gib"`
}
