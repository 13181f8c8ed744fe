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

// ResumeIn lets the CPUs run. Running already → success.
type ResumeIn struct {
	Server activities.Server `json:"server"`
}

// ResumeOut tells whether the guest is off, or not there, and so was not resumed.
type ResumeOut struct {
	Off bool `json:"off,omitempty"`
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

// GrowOut is how large the disk is after the call, in GiB. Zero from hosts of an earlier version.
type GrowOut struct {
	GiB int `json:"gib"`
}

// GrowIn makes a disk of the server's own at least GiB large, also while it is in use.
type GrowIn struct {
	Server activities.Server `json:"server"`
	Disk   manifest.Disk     `json:"disk"`
	GiB    int               `json:"gib"`
}

// PlugNICsIn plugs NICs into a running domain, on their bridges and not yet wired, or
// unplugs them. Off, or none → success.
type PlugNICsIn struct {
	Server activities.Server `json:"server"`
	Ports  []manifest.Port   `json:"ports"`
}

// PlugNICsOut tells whether the guest is off, and so has no NICs.
type PlugNICsOut struct {
	Off bool `json:"off,omitempty"`
}

// UnplugNICsOut names the NICs that the guest did not give back; it loses them with its
// next power-off.
type UnplugNICsOut struct {
	Left []string `json:"left,omitempty"`
}

// InsertSeedIn puts another seed into a running domain's drive. Off → success.
type InsertSeedIn struct {
	Server activities.Server `json:"server"`
	Seed   string            `json:"seed"`
}

// FitIn asks a running guest to have so many processors, and compares what it has.
type FitIn struct {
	Server activities.Server `json:"server"`
	CPU    int               `json:"cpu"`
	Memory int               `json:"memory"` // MiB
}

// FitOut is what the guest has now; it has it all when it is off (Running false), since
// its next start brings it.
type FitOut struct {
	Running bool `json:"running"`
	CPU     int  `json:"cpu"`
	Memory  int  `json:"memory"` // MiB
}
