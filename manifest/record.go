package manifest

import (
	"encoding/json"
	"time"
)

// Phase is where a resource stands, as users see it.
type Phase string

// Phases. Settled ones need no open workflow; the others always have one.
const (
	PhaseProvisioning Phase = "Provisioning"
	PhaseRunning      Phase = "Running"
	PhaseStopped      Phase = "Stopped"
	PhaseHeld         Phase = "Held"
	PhaseDeleting     Phase = "Deleting"
	PhaseUpdating     Phase = "Updating"
	PhaseFailed       Phase = "Failed"
	PhaseUnknown      Phase = "Unknown"
	// PhaseDamaged is that of a record that cannot be read: only its kind and name are known,
	// from its key, and Message says what is wrong. It is listed, and never written.
	PhaseDamaged Phase = "Damaged"
	// PhaseReady is Running for what does not run: networks, volumes, images.
	PhaseReady Phase = "Ready"
	// PhaseLost is a host's that was declared not to come back.
	PhaseLost Phase = "Lost"
)

// Settled reports whether a record may stay in p with no operation open.
func (p Phase) Settled() bool {
	switch p {
	case PhaseProvisioning, PhaseUpdating, PhaseDeleting, PhaseHeld:
		return false
	}
	return true
}

// Record is what etcd holds for a resource: desired and observed state. JSON, < 64 KiB.
type Record struct {
	APIVersion string          `json:"apiVersion"`
	Kind       Kind            `json:"kind"`
	Metadata   RecordMeta      `json:"metadata"`
	Spec       json.RawMessage `json:"spec"`
	Status     Status          `json:"status"`
}

// RecordMeta is a document's metadata and what burrow adds.
type RecordMeta struct {
	Metadata
	// UID is new for every build of a name (RFC 9562 v4): owners are uids, never names.
	UID        string    `json:"uid"`
	Generation int64     `json:"generation"`
	CreatedAt  time.Time `json:"createdAt"`
	CreatedBy  string    `json:"createdBy,omitempty"`
	// ResourceVersion is the etcd ModRevision; filled on reading, never stored.
	ResourceVersion int64 `json:"resourceVersion,omitempty"`
}

// Status is written whole, never patched (pitfall 62).
type Status struct {
	Phase Phase `json:"phase"`
	// Reason is the failure or hold, whole: object, action, cause, next step.
	Message            string      `json:"message,omitempty"`
	ObservedGeneration int64       `json:"observedGeneration,omitempty"`
	Operation          *Operation  `json:"operation,omitempty"`
	Conditions         []Condition `json:"conditions,omitempty"`
	Host               string      `json:"host,omitempty"`
	Addresses          []string    `json:"addresses,omitempty"`
	// Lost is set while the phase is Unknown because the host is away.
	Lost *Lost `json:"lost,omitempty"`

	// Servers.
	Ports    []Port   `json:"ports,omitempty"`
	Disks    []Disk   `json:"disks,omitempty"`
	Seed     string   `json:"seed,omitempty"`    // path of the seed ISO
	Rebuild  int      `json:"rebuild,omitempty"` // how often it was rebuilt: part of cloud-init's instance-id
	Login    string   `json:"login,omitempty"`   // user that burrow ssh and Ansible log in as
	HostKeys []string `json:"hostKeys,omitempty"`
	PowerOff bool     `json:"powerOff,omitempty"` // stopped on purpose: not started at boot
	// RebootedAt is when the guest last restarted itself, nil when it was not seen to.
	RebootedAt *time.Time      `json:"rebootedAt,omitempty"`
	Playbook   *PlaybookStatus `json:"playbook,omitempty"`
	Bundle     string          `json:"bundle,omitempty"` // digest of the playbook's bundle

	// Hosts: what one that is Lost is to do first when it comes back ("server/db: remove its
	// domain"); filled on reading, never stored.
	Debts []string `json:"debts,omitempty"`

	// Playbooks. Targets are the servers that the latest run was over, see TargetIdentity.
	Targets []string `json:"targets,omitempty"`

	// Networks.
	Network *NetworkStatus `json:"network,omitempty"`

	// Volumes.
	Volume *VolumeStatus `json:"volume,omitempty"`

	// Images.
	Image *ImageStatus `json:"image,omitempty"`
}

// Lost says that nobody knows how a resource is, since its host's worker does not answer.
type Lost struct {
	// Since is when that was noticed.
	Since time.Time `json:"since"`
	// Phase and Message are what was known before.
	Phase   Phase  `json:"phase"`
	Message string `json:"message,omitempty"`
}

// Lose makes the status Unknown, as its host is away since then; message says so to people.
// What was known stays in Lost. A status that is lost already stays as it is.
func (s *Status) Lose(since time.Time, message string) {
	if s.Lost != nil {
		return
	}
	s.Lost = &Lost{Since: since, Phase: s.Phase, Message: s.Message}
	s.Phase, s.Message = PhaseUnknown, message
}

// Find ends what Lose began: the status is again what was known before. It is no news of
// how the resource is now.
func (s *Status) Find() {
	if s.Lost == nil {
		return
	}
	s.Phase, s.Message, s.Lost = s.Lost.Phase, s.Lost.Message, nil
}

// LastPhase is the phase, or for a resource that is lost the one before.
func (s *Status) LastPhase() Phase {
	if s.Lost != nil {
		return s.Lost.Phase
	}
	return s.Phase
}

// Off reports whether a server's guest is off, or was when the operation that works on it
// began: somebody stopped it, or it powered itself off.
func (s *Status) Off() bool {
	last := s.LastPhase()
	if s.Operation != nil {
		last = s.Operation.Was
	}
	return s.PowerOff || last == PhaseStopped
}

// Operation is what is happening to a resource now; the story is in Temporal.
type Operation struct {
	WorkflowID string    `json:"workflowId"`
	RunID      string    `json:"runId"`
	Type       string    `json:"type"`
	Step       string    `json:"step,omitempty"`
	Since      time.Time `json:"since"`
	// Was is the phase that the record had before the operation; empty where an earlier
	// version began it, or there was no record.
	Was Phase `json:"was,omitempty"`
}

// ConditionAttention is the type of the condition of what a person must look at.
const ConditionAttention = "NeedsAttention"

// ConditionUnfinished is the type of the condition of a server whose last operation did not
// do what it was asked for. Its reasons:
const (
	ConditionUnfinished = "Unfinished"
	// ReasonFailed: it failed, and was undone. The next operation that succeeds ends it.
	ReasonFailed = "OperationFailed"
	// ReasonLost: its workflow was ended by other means. The next that succeeds ends it.
	ReasonLost = "OperationLost"
	// ReasonBuildLost: the same of a build, which nothing but a new build finishes.
	ReasonBuildLost = "BuildLost"
)

// Condition is one observed fact with its time.
type Condition struct {
	Type    string `json:"type"` // ConditionAttention, ConditionUnfinished, "Degraded"
	Status  bool   `json:"status"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// Objects are the names of what it is about, where it is several things of the resource.
	Objects []string  `json:"objects,omitempty"`
	Since   time.Time `json:"since"`
}

// Port is a NIC with everything settled: what cloud-init, libvirt, OVS and Ansible
// need of it, so that no later step asks again. Index i is eth<i> in the guest.
type Port struct {
	// Name is the NIC's identity on its server: its name, or "<network>-<ordinal there>".
	Name       string `json:"name"`
	Index      int    `json:"index"`
	Network    string `json:"network"`
	NetworkUID string `json:"networkUID"`
	MAC        string `json:"mac"` // lower case, colons
	// Device is the host's tap: "bw" + 10 hex digits of a hash of server uid and Name (15 characters at most).
	Device string `json:"device"`
	Bridge string `json:"bridge"`
	// Addresses with prefix length: "172.16.90.2/24"; same order as allocated (static order, or one for each subnet).
	Addresses   []string `json:"addresses,omitempty"`
	Gateways    []string `json:"gateways,omitempty"` // at most one for each family
	Nameservers []string `json:"nameservers,omitempty"`
	Search      []string `json:"search,omitempty"`
	Routes      []Route  `json:"routes,omitempty"`
	DHCP4       bool     `json:"dhcp4,omitempty"`
	DHCP6       bool     `json:"dhcp6,omitempty"`
	MTU         int      `json:"mtu"`
	VLANs       []int    `json:"vlans,omitempty"` // one: access; several: trunk
	NativeVLAN  int      `json:"nativeVlan,omitempty"`
	RateMbps    int      `json:"rateMbps,omitempty"`
	Security    bool     `json:"portSecurity"`
}

// Eth is the NIC's name in the guest: "eth0".
func (p Port) Eth() string { return "eth" + itoa(p.Index) }

// Disk is a volume attached to a server. The boot disk is vda; data disks follow in order.
type Disk struct {
	Name   string `json:"name"`   // "boot", or storage[].metadata.name
	Target string `json:"target"` // "vda"
	Pool   string `json:"pool"`
	Volume string `json:"volume"` // libvirt volume name in the pool
	Path   string `json:"path"`
	Format string `json:"format"` // "qcow2" or "raw"
	// Serial is at most 20 bytes: /dev/disk/by-id/virtio-<serial>.
	Serial  string `json:"serial"`
	SizeGiB int    `json:"sizeGiB"`
	// Owned: made by this server's operation and deleted with it. Otherwise an attached Volume.
	Owned bool `json:"owned"`
	// Backing is the chain below the volume, nearest first; for the security helper's XML (pitfall 5).
	Backing []Backing `json:"backing,omitempty"`
}

// Backing is one image below a disk.
type Backing struct {
	Path   string `json:"path"`
	Format string `json:"format"`
}

// PlaybookStatus is the last run.
type PlaybookStatus struct {
	RunID   string           `json:"runId"`
	LogKey  string           `json:"logKey"` // blob key of the log
	OK      bool             `json:"ok"`
	EndedAt time.Time        `json:"endedAt"`
	Recap   map[string]Recap `json:"recap,omitempty"` // by inventory host
}

// Recap is Ansible's count for one host.
type Recap struct {
	OK          int `json:"ok"`
	Changed     int `json:"changed"`
	Failed      int `json:"failed"`
	Unreachable int `json:"unreachable"`
	Skipped     int `json:"skipped"`
	Rescued     int `json:"rescued"`
	Ignored     int `json:"ignored"`
}

// NetworkStatus is a network with everything settled.
type NetworkStatus struct {
	// Subnets in order, host bits cleared, gateway filled unless none.
	Subnets []Subnet    `json:"subnets"`
	Mode    NetworkMode `json:"mode"`
	Bridge  string      `json:"bridge"`
	// Namespace is the network namespace on each host: gateway, DNS, dialled connections.
	Namespace string `json:"namespace"`
	Domain    string `json:"domain"`
	MTU       int    `json:"mtu"`
	VLAN      int    `json:"vlan,omitempty"`
	VNI       int    `json:"vni,omitempty"`
}

// VolumeStatus is where a volume is.
type VolumeStatus struct {
	Pool       string `json:"pool"`
	Volume     string `json:"volume"`
	Path       string `json:"path"`
	Format     string `json:"format"`
	Serial     string `json:"serial"`
	SizeGiB    int    `json:"sizeGiB"`
	AttachedTo string `json:"attachedTo,omitempty"` // "server/db"
	// AttachedUID is the server's uid: a later server of that name is not its owner.
	AttachedUID string `json:"attachedUID,omitempty"`
}

// ImageStatus is an image that is in the store.
type ImageStatus struct {
	SHA256     string   `json:"sha256"` // of the qcow2 as stored, hex
	SizeBytes  int64    `json:"sizeBytes"`
	VirtualGiB int      `json:"virtualGiB"`
	Format     string   `json:"format"`
	User       string   `json:"user"`
	OSName     string   `json:"osName,omitempty"`
	OSVersion  string   `json:"osVersion,omitempty"`
	Source     string   `json:"source"`
	Hosts      []string `json:"hosts"` // hosts that have a verified copy
}

func itoa(i int) string { b, _ := json.Marshal(i); return string(b) }
