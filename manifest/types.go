package manifest

import "slices"

// APIVersion is the only one so far.
const APIVersion = "v1"

// DefaultMTU is a network's spec.mtu where none is given.
const DefaultMTU = 1500

// Kind names a kind of document.
type Kind string

// Kinds.
const (
	KindServer        Kind = "Server"
	KindNetwork       Kind = "Network"
	KindVolume        Kind = "Volume"
	KindImage         Kind = "Image"
	KindPlaybook      Kind = "Playbook"
	KindSecurityGroup Kind = "SecurityGroup"
	KindHost          Kind = "Host"
)

// Metadata names a document.
type Metadata struct {
	Name     string            `json:"name"`
	Comment  string            `json:"comment,omitempty"`
	Labels   map[string]string `json:"labels,omitempty"`
	NodeName string            `json:"nodeName,omitempty"`
}

// ServerSpec is a server as declared, in normal form.
type ServerSpec struct {
	CPU              int        `json:"cpu"`
	Memory           int        `json:"memory"` // MiB
	Image            string     `json:"mmImage"`
	BootVolume       BootVolume `json:"bootVolume"`
	Storage          []Storage  `json:"storage,omitempty"`
	NetworkInterface []NIC      `json:"networkInterface"`
	Auth             Auth       `json:"auth"`
	Ansible          *Ansible   `json:"ansible,omitempty"`
	CloudInit        *CloudInit `json:"cloudInit,omitempty"`
	Autostart        bool       `json:"autostart"`
	OnFailure        OnFailure  `json:"onFailure"` // before the playbook; default rollback
	Readiness        Readiness  `json:"readiness"`
	Firmware         string     `json:"firmware"` // "bios"; "uefi" comes later
	Deadline         Duration   `json:"deadline,omitempty"`
	DependsOn        []string   `json:"dependsOn,omitempty"`
	Placement        *Placement `json:"placement,omitempty"`
}

// OnFailure says what an operator error does.
type OnFailure string

// What an operator error does.
const (
	OnFailureHold     OnFailure = "hold"
	OnFailureRollback OnFailure = "rollback"
	OnFailureIgnore   OnFailure = "ignore"
)

// Readiness says when a server counts as ready.
type Readiness string

// Readiness levels.
const (
	ReadinessCloudInit Readiness = "cloud-init"
	ReadinessSSH       Readiness = "ssh"
	ReadinessRunning   Readiness = "running"
)

// Duration is a Go duration string in JSON and YAML ("2h"); zero means unset.
type Duration string

// BootVolume is the boot disk.
type BootVolume struct {
	Name string `json:"name,omitempty"` // an existing boot volume; empty: made from the image
	Type string `json:"type"`           // qcow2 (default), raw
	Size int    `json:"size,omitempty"` // GiB; 0: the image's virtual size, or 10 if that is smaller
}

// Storage is a data disk: an existing Volume of that name, or a new one as Spec says.
type Storage struct {
	Name string `json:"name"`
	// Spec nil: the Volume must exist or be in the same apply.
	Spec *VolumeSpec `json:"spec,omitempty"`
}

// NIC is a network interface as declared.
type NIC struct {
	Name        string       `json:"name"` // identity; default "<network>-<ordinal there>"
	Network     string       `json:"networkname"`
	Address     []string     `json:"address,omitempty"` // static: bare addresses, canonical text
	MAC         string       `json:"mac,omitempty"`
	Routes      []Route      `json:"routes,omitempty"`
	Nameservers *Nameservers `json:"nameservers,omitempty"`
	DHCP4       bool         `json:"dhcp4,omitempty"`
	DHCP6       bool         `json:"dhcp6,omitempty"`
	VLANs       []int        `json:"vlans,omitempty"`
	NativeVLAN  int          `json:"nativeVlan,omitempty"`
	RateMbps    int          `json:"rateMbps,omitempty"`
}

// Route is a static route: To is a CIDR or "default".
type Route struct {
	To  string `json:"to"`
	Via string `json:"via"`
}

// Nameservers is resolver configuration of a NIC.
type Nameservers struct {
	Addresses []string `json:"addresses,omitempty"`
	Search    []string `json:"search,omitempty"`
}

// Auth is who may log in.
type Auth struct {
	URL       []string `json:"url,omitempty"`       // https URLs; github:USER already expanded
	PublicKey []string `json:"publicKey,omitempty"` // authorized_keys lines; file:PATH already read
	Users     []string `json:"users,omitempty"`     // empty: the image's default login
	// RootPassword is a crypt(3) hash ("$6$…") or "secret:NAME"; clear text never gets here.
	RootPassword string `json:"rootPassword,omitempty"`
}

// Ansible is what finishes the server.
type Ansible struct {
	Playbook []string `json:"playbook"` // paths inside the bundle, or of what is pulled
	// Pull and RemotePlaybook: it runs inside the guest, and there is one Playbook.
	Pull           *Pull      `json:"pull,omitempty"`
	RemotePlaybook bool       `json:"remotePlaybook,omitempty"`
	Source         *GitSource `json:"source,omitempty"`
	Inventory      string     `json:"inventory,omitempty"`
	// Requirements is a file of ansible-galaxy, in the bundle.
	Requirements string         `json:"requirements,omitempty"`
	ExtraArgs    []string       `json:"extra-args,omitempty"`
	ExtraVars    map[string]any `json:"extraVars,omitempty"`
	// VaultPassword and BecomePassword are "secret:NAME"; so may be any text in ExtraVars.
	VaultPassword  string `json:"vaultPassword,omitempty"`
	BecomePassword string `json:"becomePassword,omitempty"`

	Tags      []string  `json:"tags,omitempty"`
	SkipTags  []string  `json:"skipTags,omitempty"`
	Retries   int       `json:"retries"`
	Timeout   Duration  `json:"timeout"`
	OnFailure OnFailure `json:"onFailure"` // default hold
}

// PlaybookSpec is a Playbook document as declared, in normal form: a run over several
// servers, once they are Running.
type PlaybookSpec struct {
	Ansible
	Targets   Targets  `json:"targets"`
	DependsOn []string `json:"dependsOn,omitempty"`
}

// Targets are the servers that a Playbook is for: those named, and those with the labels.
type Targets struct {
	Servers  []string          `json:"servers,omitempty"`
	Selector map[string]string `json:"selector,omitempty"`
}

// Matches reports whether a server is one of them.
func (t Targets) Matches(name string, labels map[string]string) bool {
	if slices.Contains(t.Servers, name) {
		return true
	}
	for key, value := range t.Selector {
		if got, ok := labels[key]; !ok || got != value {
			return false
		}
	}
	return len(t.Selector) > 0
}

// CloudInit is merged over ours by cloud-init's own rules. Inline text; files already read.
type CloudInit struct {
	UserData      string `json:"userData,omitempty"`
	NetworkConfig string `json:"networkConfig,omitempty"`
}

// Placement chooses hosts.
type Placement struct {
	Selector map[string]string `json:"selector,omitempty"`
}

// NetworkMode says how a network meets the world.
type NetworkMode string

// Network modes.
const (
	ModeNAT      NetworkMode = "nat"
	ModeRouted   NetworkMode = "routed"
	ModeIsolated NetworkMode = "isolated"
	ModeBridge   NetworkMode = "bridge"
	ModeOverlay  NetworkMode = "overlay"
)

// HostBridge is the network that the hypervisor itself is on; `burrow up` declares
// it as a NAT network where the operator has configured none.
const HostBridge = "host-bridge"

// NetworkSpec is a network as declared, in normal form.
type NetworkSpec struct {
	Subnets      []Subnet    `json:"subnets,omitempty"` // empty: the first free /24 of 172.16.100.0–172.16.199.0
	Mode         NetworkMode `json:"mode"`
	BridgeName   string      `json:"bridgeName,omitempty"`
	DNS          DNS         `json:"dns"`
	DHCP         bool        `json:"dhcp,omitempty"`
	MTU          int         `json:"mtu"`
	VLAN         int         `json:"vlan,omitempty"`
	PortSecurity bool        `json:"portSecurity"`
	VNI          int         `json:"vni,omitempty"` // of an overlay; 0: chosen
}

// Subnet of a network. Text forms are canonical (netip).
type Subnet struct {
	CIDR     string   `json:"cidr"`               // host bits cleared
	Gateway  string   `json:"gateway,omitempty"`  // "none", or an address; default the first
	Range    string   `json:"range,omitempty"`    // "a-b"
	Reserved []string `json:"reserved,omitempty"` // "a" or "a-b"
}

// DNS of a network.
type DNS struct {
	Domain     string   `json:"domain,omitempty"` // default the network's name
	Forwarders []string `json:"forwarders,omitempty"`
}

// VolumeSpec is a volume as declared, in normal form.
type VolumeSpec struct {
	Type         string `json:"type"`           // qcow2 (default), raw
	Size         int    `json:"size"`           // GiB
	Kind         string `json:"kind,omitempty"` // "data" (default), "os"
	Persistent   bool   `json:"persistent,omitempty"`
	StorageClass string `json:"storageClass,omitempty"`
	Clone        string `json:"clone,omitempty"` // os: linked (default), full
	Image        string `json:"image,omitempty"` // os
}

// ImageSpec is an image as declared.
type ImageSpec struct {
	SourceURL   string `json:"sourceUrl"`
	SHA256      string `json:"sha256,omitempty"`
	ChecksumURL string `json:"checksumUrl,omitempty"`
	Format      string `json:"format,omitempty"`
	User        string `json:"user,omitempty"`
	OSName      string `json:"osName,omitempty"`
	OSVersion   string `json:"osVersion,omitempty"`
}
