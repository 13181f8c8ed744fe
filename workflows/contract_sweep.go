package workflows

import (
	"time"

	"burrow.dev/burrow/activities/sweep"
	"burrow.dev/burrow/manifest"
)

// IDs of the workflows that look at everything: one of each at a time.
const (
	IDSweep = "sweep"
	IDDrift = "drift"
)

// DefaultGraceSeconds lie at least between the first sighting of an orphan and its removal:
// longer than any step goes on after its worker has lost Temporal, and less than the time
// between two sweeps.
const DefaultGraceSeconds = 600

// SweepIn starts a sweep. Drift takes it too, and only reports.
type SweepIn struct {
	// Remove are owners without a record of which a person said that what is left goes.
	Remove       []string `json:"remove,omitempty"`
	GraceSeconds int      `json:"graceSeconds"`
	RequestedBy  string   `json:"requestedBy,omitempty"`
}

// SweepOut is what a sweep did, and what it only noted.
type SweepOut struct {
	At time.Time `json:"at"`
	// Settled are the records whose operation was lost.
	Settled []Settled `json:"settled,omitempty"`
	// Findings are the differences, with what was done about each.
	Findings []sweep.Finding `json:"findings,omitempty"`
	// More counts what did not fit; the next sweep finds it.
	More int `json:"more,omitempty"`
	// Away are hosts that were not looked at, with the reason.
	Away []Away `json:"away,omitempty"`
}

// Settled is a record whose operation ended without finishing.
type Settled struct {
	Ref string `json:"ref"`
	// Was is the operation that is gone, Phase what the record said.
	Was   string         `json:"was"`
	Phase manifest.Phase `json:"phase"`
	Since time.Time      `json:"since,omitzero"`
	// Done: the record is settled. What says how, or why not (yet).
	Done bool   `json:"done,omitempty"`
	What string `json:"what"`
}

// Away is a host that was not looked at.
type Away struct {
	Host string `json:"host"`
	Why  string `json:"why"`
}

// Clean reports whether nothing differs: there is nothing to mend and nothing to note.
func (o SweepOut) Clean() bool { return len(o.Settled)+len(o.Findings)+len(o.Away)+o.More == 0 }

// ScheduledIn is what a schedule starts: the workflow that anybody may start too.
type ScheduledIn struct {
	Workflow string  `json:"workflow"` // NameSweep or NameDrift
	Input    SweepIn `json:"input"`
}

// SettleIn names a record whose operation ended without finishing.
type SettleIn struct {
	Kind        manifest.Kind `json:"kind"`
	Name        string        `json:"name"`
	UID         string        `json:"uid"`
	RequestedBy string        `json:"requestedBy,omitempty"`
}

// SettleOut says how it was settled; empty: there was nothing to do.
type SettleOut struct {
	What string `json:"what"`
}

// LoseHostID is the ID of the workflow that declares a host lost.
func LoseHostID(host string) string { return "host/" + host + "/lost" }

// LoseHostIn declares that a host does not come back. One whose worker lives is refused.
type LoseHostIn struct {
	Host        string `json:"host"`
	RequestedBy string `json:"requestedBy,omitempty"`
}

// LoseHostOut says since when it is lost, which servers are there, and the resources whose
// operation waits for it no more.
type LoseHostOut struct {
	Since   time.Time `json:"since"`
	Servers []string  `json:"servers,omitempty"`
	Told    []string  `json:"told,omitempty"`
}
