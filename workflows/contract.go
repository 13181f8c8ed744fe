package workflows

import (
	"strings"
	"time"

	"burrow.dev/burrow/activities/image"
	"burrow.dev/burrow/activities/sweep"
	"burrow.dev/burrow/manifest"
)

// Registered workflow names. Part of the history: never renamed, only added.
const (
	NameProvisionServer = "ProvisionServer"
	NameDeleteServer    = "DeleteServer"
	NamePowerServer     = "PowerServer"
	NameCreateNetwork   = "CreateNetwork"
	NameDeleteNetwork   = "DeleteNetwork"
	NameCreateVolume    = "CreateVolume"
	NameDeleteVolume    = "DeleteVolume"
	NameCreateImage     = "CreateImage"
	NameDeleteImage     = "DeleteImage"
	NameApplyDocuments  = "ApplyDocuments"
	NameStartNext       = "StartNext"
	NameConfigureServer = "ConfigureServer"
	NameUpdateServer    = "UpdateServer"
	NameRebuildServer   = "RebuildServer"
	NameSweep           = "Sweep"
	NameDrift           = "Drift"
	NameScheduled       = "Scheduled"
	NameSettleServer    = "SettleServer"
	NameSettleResource  = "SettleResource"
)

// IsDelete reports whether a workflow takes a resource away. Those are not cancelled.
func IsDelete(workflow string) bool {
	switch workflow {
	case NameDeleteServer, NameDeleteNetwork, NameDeleteVolume, NameDeleteImage:
		return true
	}
	return false
}

// Queries and updates.
const (
	// QueryProgress answers a Progress.
	QueryProgress = "progress"
	// UpdateRetry lets a held operation try the failed step again; argument RetryIn.
	UpdateRetry = "retry"
	// UpdateSkip lets a held operation go on without its playbook.
	UpdateSkip = "skip"
	// UpdateAbort ends a held operation with compensation.
	UpdateAbort = "abort"
)

// ProvisionServerIn declares a server to build.
type ProvisionServerIn struct {
	Metadata manifest.Metadata   `json:"metadata"`
	Spec     manifest.ServerSpec `json:"spec"`
	// Bundle is the digest of the playbook's folder; empty without a playbook.
	Bundle      string `json:"bundle,omitempty"`
	RequestedBy string `json:"requestedBy,omitempty"`
}

// RetryIn may bring an edited playbook with it. Empty: the same again.
type RetryIn struct {
	Bundle      string            `json:"bundle,omitempty"`
	Ansible     *manifest.Ansible `json:"ansible,omitempty"`
	RequestedBy string            `json:"requestedBy,omitempty"`
}

// DecisionIn is what skip and abort carry.
type DecisionIn struct {
	RequestedBy string `json:"requestedBy,omitempty"`
}

// DeleteIn names a resource to delete.
type DeleteIn struct {
	Name        string `json:"name"`
	RequestedBy string `json:"requestedBy,omitempty"`
}

// PowerAction is what PowerServer does.
type PowerAction string

// Power actions.
const (
	PowerStart   PowerAction = "start"
	PowerStop    PowerAction = "stop"
	PowerRestart PowerAction = "restart"
)

// PowerServerIn starts, stops or restarts a built server.
type PowerServerIn struct {
	Name   string      `json:"name"`
	Action PowerAction `json:"action"`
	// GraceSeconds is how long the guest may take to power off by itself; then it is forced.
	GraceSeconds int    `json:"graceSeconds"`
	RequestedBy  string `json:"requestedBy,omitempty"`
}

// ConfigureServerIn runs a playbook on a server that is Running. What is empty is as the
// server's record has it when its turn comes. Nothing of it is a secret: it stays in the history.
type ConfigureServerIn struct {
	Name string `json:"name"`
	// Bundle is the digest of another playbook folder; the recorded one stays recorded.
	Bundle string `json:"bundle,omitempty"`
	// Playbook and Inventory are paths inside the bundle, instead of the recorded ones.
	Playbook    []string       `json:"playbook,omitempty"`
	Inventory   string         `json:"inventory,omitempty"`
	Tags        []string       `json:"tags,omitempty"`
	SkipTags    []string       `json:"skipTags,omitempty"`
	ExtraVars   map[string]any `json:"extraVars,omitempty"` // over the recorded ones
	Check       bool           `json:"check,omitempty"`     // only say what would change
	Diff        bool           `json:"diff,omitempty"`      // show differences in the log
	RequestedBy string         `json:"requestedBy,omitempty"`
}

// ConfigureServerOut is the run. Skipped by a person: no RunID.
type ConfigureServerOut struct {
	Check bool                      `json:"check"`
	RunID string                    `json:"runId"`
	Recap map[string]manifest.Recap `json:"recap"`
}

// RebuildServerIn builds a server anew on a new boot disk; it stays the same server.
type RebuildServerIn struct {
	Name string `json:"name"`
	// Image is the one it is built from, and declared with from now on; empty: as declared.
	Image       string `json:"image,omitempty"`
	RequestedBy string `json:"requestedBy,omitempty"`
}

// CreateNetworkIn declares a network.
type CreateNetworkIn struct {
	Metadata    manifest.Metadata    `json:"metadata"`
	Spec        manifest.NetworkSpec `json:"spec"`
	RequestedBy string               `json:"requestedBy,omitempty"`
}

// CreateVolumeIn declares a volume.
type CreateVolumeIn struct {
	Metadata    manifest.Metadata   `json:"metadata"`
	Spec        manifest.VolumeSpec `json:"spec"`
	RequestedBy string              `json:"requestedBy,omitempty"`
}

// CreateImageIn brings an image into the library: exactly one of Import and Build.
type CreateImageIn struct {
	Metadata manifest.Metadata `json:"metadata"`
	// Spec is the document's; nil where no document declares the image.
	Spec        *manifest.ImageSpec `json:"spec,omitempty"`
	Import      *image.ImportIn     `json:"import,omitempty"`
	Build       *image.BuildIn      `json:"build,omitempty"`
	Host        string              `json:"host,omitempty"` // empty: any live host
	RequestedBy string              `json:"requestedBy,omitempty"`
}

// UpdateServerIn declares what a server that stands is to become.
type UpdateServerIn struct {
	ProvisionServerIn
	// Restart: what the guest sees only after a restart is brought about by one.
	Restart bool `json:"restart,omitempty"`
}

// Document is one document of an apply: exactly one of the inputs is set.
type Document struct {
	Ref       string             `json:"ref"` // "server/db": also the child's workflow ID
	DependsOn []string           `json:"dependsOn,omitempty"`
	Network   *CreateNetworkIn   `json:"network,omitempty"`
	Volume    *CreateVolumeIn    `json:"volume,omitempty"`
	Image     *CreateImageIn     `json:"image,omitempty"`
	Server    *ProvisionServerIn `json:"server,omitempty"`
	Update    *UpdateServerIn    `json:"update,omitempty"`
}

// ApplyIn is a set of documents, in dependency order.
type ApplyIn struct {
	Documents []Document `json:"documents"`
	// Width is how many documents are built at a time; default 8.
	Width int `json:"width,omitempty"`
	// Queue: a document whose resource is busy waits for its turn, instead of being refused.
	Queue bool `json:"queue,omitempty"`
	// Restart: servers that are changed are restarted where the change needs it.
	Restart bool `json:"restart,omitempty"`
}

// ApplyOut says how each document ended, in order.
type ApplyOut struct {
	Results []DocumentResult `json:"results"`
}

// DocumentResult is one document's end. Error empty: it is ready.
type DocumentResult struct {
	Ref   string `json:"ref"`
	Error string `json:"error,omitempty"`
	// Skipped: not started, because something it depends on failed.
	Skipped bool `json:"skipped,omitempty"`
	// Busy: not started, because another operation runs on it.
	Busy bool `json:"busy,omitempty"`
}

// NextID is the ID of the one workflow that waits for a resource: its queue has one place.
func NextID(ref string) string { return ref + nextSuffix }

// ResourceOf gives the resource of an operation's ID, also of one that waits for it.
func ResourceOf(id string) string { return strings.TrimSuffix(id, nextSuffix) }

const nextSuffix = "/next"

// MemoNext is the memo of a waiting workflow that names the operation it will start.
const MemoNext = "next"

// StartNextIn waits for (or cancels) the open operation of a resource, then starts the
// next one. It lives in Temporal, so it goes on although the CLI that asked is gone.
type StartNextIn struct {
	Ref    string    `json:"ref"` // "server/db"
	Cancel bool      `json:"cancel"`
	Next   Operation `json:"next"`
	// TurnOnly: it ends when the resource is free; whoever asked starts the next operation
	// itself, and Next is empty.
	TurnOnly    bool   `json:"turnOnly,omitempty"`
	RequestedBy string `json:"requestedBy,omitempty"`
}

// Operation is a workflow to start; exactly one is set.
type Operation struct {
	DeleteServer  *DeleteIn          `json:"deleteServer,omitempty"`
	DeleteNetwork *DeleteIn          `json:"deleteNetwork,omitempty"`
	DeleteVolume  *DeleteIn          `json:"deleteVolume,omitempty"`
	DeleteImage   *DeleteIn          `json:"deleteImage,omitempty"`
	PowerServer   *PowerServerIn     `json:"powerServer,omitempty"`
	CreateImage   *CreateImageIn     `json:"createImage,omitempty"`
	Configure     *ConfigureServerIn `json:"configure,omitempty"`
	Rebuild       *RebuildServerIn   `json:"rebuild,omitempty"`
}

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
