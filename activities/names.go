// Package activities holds what every activity shares: the registered names, and
// the identity of the server an activity works for. One subpackage a subject.
//
// Every activity looks, acts, verifies; marks what it makes; refuses what carries
// no mark of ours; and may be run again at any point.
package activities

// Registered names. They are part of the history: never renamed, only added.
const (
	// Control queue.
	StateBegin         = "state.Begin"
	StateFinish        = "state.Finish"
	StateFail          = "state.Fail"
	StateHold          = "state.Hold"
	StateNote          = "state.Note"
	StateRemove        = "state.Remove"
	StateLook          = "state.Look"
	StateAwaitClosed   = "state.AwaitClosed"
	StateAdopt         = "state.Adopt"
	StateTargets       = "state.Targets"
	StateAttachVolumes = "state.AttachVolumes"
	StateDetachVolumes = "state.DetachVolumes"
	PlacePlace         = "place.Place"
	PlaceRelease       = "place.Release"
	PlaceResize        = "place.Resize"
	KeysFetch          = "keys.Fetch"
	AnsibleCheck       = "ansible.Check"
	IPAMAllocate       = "ipam.Allocate"
	IPAMRelease        = "ipam.Release"
	IPAMSettleNetwork  = "ipam.SettleNetwork"
	IPAMForgetNetwork  = "ipam.ForgetNetwork"
	SweepUnfinished    = "sweep.Unfinished"
	SweepLookState     = "sweep.LookState"
	SweepJudge         = "sweep.Judge"
	SweepClearState    = "sweep.ClearState"
	LostDeclare        = "lost.Declare"
	LostTell           = "lost.Tell"
	LostAsk            = "lost.Ask"
	LostOwe            = "lost.Owe"

	// Host queues.
	ImageEnsure      = "image.Ensure"
	ImageImport      = "image.Import"
	ImageBuild       = "image.Build"
	ImageRemove      = "image.Remove"
	VolumeBuild      = "volume.Build"
	VolumeRemove     = "volume.Remove"
	VolumeCreate     = "volume.Create"
	VolumeAdd        = "volume.Add"
	VolumeDrop       = "volume.Drop"
	VolumeRebuild    = "volume.Rebuild"
	VolumeDiscard    = "volume.Discard"
	VolumeDelete     = "volume.Delete"
	NetworkEnsure    = "network.Ensure"
	NetworkRelease   = "network.Release"
	NetworkProbe     = "network.Probe"
	NetworkWire      = "network.Wire"
	NetworkUnwire    = "network.Unwire"
	SeedWrite        = "seed.Write"
	SeedRemove       = "seed.Remove"
	SeedPrune        = "seed.Prune"
	SeedReaddress    = "seed.Readdress"
	DomainStart      = "domain.Start"
	DomainResume     = "domain.Resume"
	DomainShutdown   = "domain.Shutdown"
	DomainPlug       = "domain.Plug"
	DomainUnplug     = "domain.Unplug"
	DomainGrow       = "domain.Grow"
	DomainRedefine   = "domain.Redefine"
	DomainPlugNICs   = "domain.PlugNICs"
	DomainUnplugNICs = "domain.UnplugNICs"
	DomainInsertSeed = "domain.InsertSeed"
	DomainFit        = "domain.Fit"
	DomainRemove     = "domain.Remove"
	GuestWaitReady   = "guest.WaitReady"
	AnsibleRun       = "ansible.Run"
	AnsibleReap      = "ansible.Reap"
	DomainLook       = "domain.Look"
	SweepLookHost    = "sweep.LookHost"
	SweepClearHost   = "sweep.ClearHost"
)

// ControlQueue is the task queue of the control workers.
const ControlQueue = "control"

// HostQueue is the task queue of one hypervisor's worker.
func HostQueue(host string) string { return "host/" + host }

// NextSuffix ends the ID of the one workflow that waits for a resource, to start an
// operation on it.
const NextSuffix = "/next"

// Server is the server an activity works for. UID owns everything made for it.
type Server struct {
	Name string `json:"name"`
	UID  string `json:"uid"`
}

// Ref gives the name users see: "server/db".
func (s Server) Ref() string { return "server/" + s.Name }

// Nothing is the result of an activity that only acts.
type Nothing struct{}
