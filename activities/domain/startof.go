package domain

import (
	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/manifest"
)

// StartOf is the start of a server that was built before: everything it needs is in its
// record and its spec.
func StartOf(rec manifest.Record, spec manifest.ServerSpec) StartIn {
	return StartIn{
		Server: activities.Server{Name: rec.Metadata.Name, UID: rec.Metadata.UID},
		CPU:    spec.CPU, Memory: spec.Memory,
		Disks: rec.Status.Disks, Ports: rec.Status.Ports, Seed: rec.Status.Seed, Firmware: spec.Firmware,
	}
}
