package sweep

import (
	"time"

	"burrow.dev/burrow/manifest"
)

// Thing is what a finding is about.
type Thing string

// Things.
const (
	// On a host.
	ThingDomain    Thing = "domain"
	ThingVolume    Thing = "volume"
	ThingPort      Thing = "port"
	ThingSeed      Thing = "seed"
	ThingConsole   Thing = "console"
	ThingReference Thing = "reference"
	ThingNetwork   Thing = "network"
	// In etcd.
	ThingAddress     Thing = "address"
	ThingMAC         Thing = "mac"
	ThingReservation Thing = "reservation"
	ThingAttachment  Thing = "attachment"
	ThingKeys        Thing = "keys"
	ThingClaim       Thing = "claim"
	ThingPool        Thing = "pool"
	// ThingRecord is a record that is not as it should be; a sweep changes nothing by it.
	ThingRecord Thing = "record"
)

// Verdict is what a sweep does about a finding.
type Verdict string

// Verdicts.
const (
	// VerdictNote: nothing is done by itself.
	VerdictNote Verdict = "note"
	// VerdictAsk: removed only when a person says so, by `burrow sweep --remove OWNER`.
	VerdictAsk Verdict = "ask"
	// VerdictWait: removed when it is seen again later.
	VerdictWait Verdict = "wait"
	// VerdictRemove: to be removed now.
	VerdictRemove Verdict = "remove"
	// VerdictMended: removed, or put right.
	VerdictMended Verdict = "mended"
)

// Finding is one difference between the world and the records.
type Finding struct {
	// ID is the same at every sighting: "kvm1/domain/<uid>".
	ID    string `json:"id"`
	Thing Thing  `json:"thing"`
	// Object as users name it: "domain db", "address 172.16.90.2 of network/db-net".
	Object string `json:"object"`
	// Ref is the resource it belongs to, "server/db"; empty when that is not known.
	Ref     string `json:"ref,omitempty"`
	Host    string `json:"host,omitempty"`
	Problem string `json:"problem"`
	// UID is its owner's; of volumes only the first 8 digits may be known.
	UID string `json:"uid,omitempty"`
	// Name is the thing's own: a volume's, a device's, a network's uid.
	Name string `json:"name,omitempty"`
	// OnHost: its host found it, and removes it; otherwise it is in etcd.
	OnHost bool `json:"onHost,omitempty"`
	// Deleted: the store remembers that its owner was deleted.
	Deleted bool `json:"deleted,omitempty"`
	// Active: a guest that is not off.
	Active bool `json:"active,omitempty"`
	// Revision of a claim.
	Revision int64 `json:"revision,omitempty"`

	// Kept says why it is not removed although nobody seems to own it.
	Kept string `json:"kept,omitempty"`

	// Since is the first sighting.
	Since   time.Time `json:"since,omitzero"`
	Verdict Verdict   `json:"verdict,omitempty"`
	// Next says what a sweep does about it, or what a person can do.
	Next string `json:"next,omitempty"`
	// Error says why it could not be removed.
	Error string `json:"error,omitempty"`
}

// FindingsMost is how many findings one look gives; the rest is counted, and found by the
// next one.
const FindingsMost = 200

// LookIn asks for the differences on a host, or in etcd.
type LookIn struct{}

// LookOut is what was found. More counts what was left out.
type LookOut struct {
	Findings []Finding `json:"findings,omitempty"`
	More     int       `json:"more,omitempty"`
}

// UnfinishedIn asks for records without a settled phase and without an open operation.
type UnfinishedIn struct{}

// UnfinishedOut lists them, at most UnfinishedMost, and the hosts.
type UnfinishedOut struct {
	Records []Unfinished `json:"records,omitempty"`
	More    int          `json:"more,omitempty"`
	Alive   []string     `json:"alive,omitempty"`
	Away    []string     `json:"away,omitempty"`
	// Lost are those of Away that are declared lost: nobody waits for them.
	Lost []string `json:"lost,omitempty"`
}

// UnfinishedMost bounds how many operations one sweep starts.
const UnfinishedMost = 50

// Unfinished is a record whose operation ended without finishing.
type Unfinished struct {
	Kind  manifest.Kind  `json:"kind"`
	Name  string         `json:"name"`
	UID   string         `json:"uid"`
	Phase manifest.Phase `json:"phase"`
	// Host is where what it made is; empty: nowhere yet.
	Host string `json:"host,omitempty"`
	// Was is the operation that is gone.
	Was manifest.Operation `json:"was"`
}

// Ref is the resource as users name it, which is the ID of its operations.
func (u Unfinished) Ref() string { return manifest.Ref(u.Kind, u.Name) }

// JudgeIn is everything that one round found.
type JudgeIn struct {
	Findings []Finding `json:"findings,omitempty"`
	// Away are hosts that were not looked at: what is there is not known.
	Away []string `json:"away,omitempty"`
	// Remove are owners (a uid, or its first 8 digits) of which a person said that what is
	// left of them goes.
	Remove []string `json:"remove,omitempty"`
	// GraceSeconds lie at least between the first sighting of a thing and its removal.
	GraceSeconds int `json:"graceSeconds"`
}

// JudgeOut is the same findings with their first sighting, verdict and next step.
type JudgeOut struct {
	Findings []Finding `json:"findings,omitempty"`
}

// ClearIn removes findings whose verdict is VerdictRemove, if they still are what they were.
type ClearIn struct {
	Findings []Finding `json:"findings"`
}

// ClearOut is the same findings: mended, or with the error.
type ClearOut struct {
	Findings []Finding `json:"findings"`
}
