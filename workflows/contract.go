package workflows

import (
	"encoding/json"
	"strings"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/activities/image"
	"burrow.dev/burrow/internal/errs"
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
	NameRunPlaybook     = "RunPlaybook"
	NameDeletePlaybook  = "DeletePlaybook"
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
	NameLoseHost        = "LoseHost"
)

// IsDelete reports whether a workflow takes a resource away. Those are not cancelled.
func IsDelete(workflow string) bool {
	switch workflow {
	case NameDeleteServer, NameDeleteNetwork, NameDeleteVolume, NameDeleteImage, NameDeletePlaybook:
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
	// Playbook, Inventory and Requirements are paths inside the bundle, instead of the recorded ones.
	Playbook     []string       `json:"playbook,omitempty"`
	Inventory    string         `json:"inventory,omitempty"`
	Requirements string         `json:"requirements,omitempty"`
	Tags         []string       `json:"tags,omitempty"`
	SkipTags     []string       `json:"skipTags,omitempty"`
	ExtraVars    map[string]any `json:"extraVars,omitempty"` // over the recorded ones
	Check        bool           `json:"check,omitempty"`     // only say what would change
	Diff         bool           `json:"diff,omitempty"`      // show differences in the log
	RequestedBy  string         `json:"requestedBy,omitempty"`
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

// RunPlaybookIn declares a run over several servers.
type RunPlaybookIn struct {
	Metadata manifest.Metadata     `json:"metadata"`
	Spec     manifest.PlaybookSpec `json:"spec"`
	// Bundle is the digest of the playbook's folder.
	Bundle      string `json:"bundle"`
	RequestedBy string `json:"requestedBy,omitempty"`
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
	Playbook  *RunPlaybookIn     `json:"playbook,omitempty"`
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

const (
	// MostDocuments is how many an apply may have: each takes up to 8 events, and no history
	// should have more than 2,000.
	MostDocuments = 250
	// MostApplyBytes is how large an ApplyIn may be as JSON. Temporal refuses one of 2 MiB
	// (limit.blobSize.error), by an error that nobody understands.
	MostApplyBytes = 3 << 19
)

// Fits refuses a set of documents that is too large for one apply.
func (in ApplyIn) Fits() error {
	const next = "apply it in parts: name fewer files or folders; what stands already does not count"
	if n := len(in.Documents); n > MostDocuments {
		return errs.NewPermanent("apply", "take its documents", errs.Reason("%d are to be built or changed, and one apply takes %d", n, MostDocuments), next)
	}
	text, err := json.Marshal(in)
	if err != nil {
		return errs.NewPermanent("apply", "encode its documents", err, "")
	}
	if len(text) > MostApplyBytes {
		return errs.NewPermanent("apply", "take its documents", errs.Reason("they are %d KiB, and one apply takes %d", len(text)>>10, MostApplyBytes>>10), next)
	}
	return nil
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
func NextID(ref string) string { return ref + activities.NextSuffix }

// ResourceOf gives the resource of an operation's ID, also of one that waits for it.
func ResourceOf(id string) string { return strings.TrimSuffix(id, activities.NextSuffix) }

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
	DeleteServer   *DeleteIn          `json:"deleteServer,omitempty"`
	DeleteNetwork  *DeleteIn          `json:"deleteNetwork,omitempty"`
	DeleteVolume   *DeleteIn          `json:"deleteVolume,omitempty"`
	DeleteImage    *DeleteIn          `json:"deleteImage,omitempty"`
	DeletePlaybook *DeleteIn          `json:"deletePlaybook,omitempty"`
	RunPlaybook    *RunPlaybookIn     `json:"runPlaybook,omitempty"`
	PowerServer    *PowerServerIn     `json:"powerServer,omitempty"`
	CreateImage    *CreateImageIn     `json:"createImage,omitempty"`
	Configure      *ConfigureServerIn `json:"configure,omitempty"`
	Rebuild        *RebuildServerIn   `json:"rebuild,omitempty"`
}
