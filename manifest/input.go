package manifest

// The input structs are the manifest as users write it. Their tags are the single
// statement of the rules: the decoder enforces them and the JSON Schema shows them.
//
//	json        the field's name
//	alias       other names, by comma; "!" marks a deprecated one
//	jsonschema  required, default, minimum, maximum, enum, minLength, maxLength, maxItems
//	secret      "true": messages never show the value
//
// What users may not write yet is in unsupported.go.

// input is one document.
type input[S any] struct {
	APIVersion string        `json:"apiVersion" jsonschema:"required,enum=v1" jsonschema_description:"Always v1."`
	Kind       string        `json:"kind" jsonschema:"required" jsonschema_description:"The kind of this document."`
	Metadata   metadataInput `json:"metadata" jsonschema:"required" jsonschema_description:"Names the document."`
	Spec       S             `json:"spec" jsonschema_description:"What is wanted."`
}

type metadataInput struct {
	Name     string            `json:"name" jsonschema:"required,minLength=1,maxLength=63" jsonschema_description:"Unique in its kind: lower-case letters, digits and '-' (images: '.' too)."`
	Comment  string            `json:"comment,omitempty" jsonschema:"maxLength=1000" jsonschema_description:"For people."`
	Labels   map[string]string `json:"labels,omitempty" jsonschema_description:"Words to select by; they become Ansible groups."`
	NodeName string            `json:"nodeName,omitempty" jsonschema:"maxLength=63" jsonschema_description:"Pins it to this host."`
}

type serverInput struct {
	CPU              int             `json:"cpu,omitempty" jsonschema:"minimum=1,maximum=512,default=2" jsonschema_description:"vCPUs."`
	Memory           memorySize      `json:"memory,omitempty" jsonschema:"minimum=64,maximum=16777216,default=2048" jsonschema_description:"MiB, or text with a unit: 512MiB, 4GiB."`
	Image            string          `json:"mmImage,omitempty" alias:"image,!osVariant" jsonschema:"minLength=1,default=ubuntu24.04" jsonschema_description:"Name of an Image, or one of the catalogue."`
	BootVolume       bootVolumeInput `json:"bootVolume,omitempty" jsonschema_description:"The boot disk."`
	Storage          []storageInput  `json:"storage,omitempty" jsonschema:"maxItems=24" jsonschema_description:"Data disks in order: /dev/vdb, /dev/vdc and so on."`
	NetworkInterface []nicInput      `json:"networkInterface,omitempty" jsonschema:"maxItems=16" jsonschema_description:"NICs in order: eth0, eth1 and so on. None at all: one on host-bridge."`
	Auth             authInput       `json:"auth,omitempty" jsonschema_description:"Who may log in."`
	Ansible          *ansibleInput   `json:"ansible,omitempty" jsonschema_description:"The playbook that finishes the server."`
	CloudInit        *cloudInitInput `json:"cloudInit,omitempty" jsonschema_description:"Merged over burrow's own by cloud-init's rules."`
	Placement        *placementInput `json:"placement,omitempty" jsonschema_description:"Which hosts may carry it."`
	Firmware         string          `json:"firmware,omitempty" jsonschema:"enum=bios,default=bios" jsonschema_description:"How it boots."`
	Autostart        bool            `json:"autostart,omitempty" jsonschema:"default=true" jsonschema_description:"Started with its host."`
	OnFailure        OnFailure       `json:"onFailure,omitempty" jsonschema:"enum=rollback,enum=hold,default=rollback" jsonschema_description:"What an error before the playbook does when a person must mend it."`
	Readiness        Readiness       `json:"readiness,omitempty" jsonschema:"enum=cloud-init,enum=ssh,enum=running,default=cloud-init" jsonschema_description:"When it counts as ready: cloud-init has finished, login works, or the domain runs."`
	Deadline         Duration        `json:"deadline,omitempty" jsonschema_description:"Rolled back when this has passed: 30m, 2h."`
	DependsOn        []string        `json:"dependsOn,omitempty" jsonschema:"maxItems=100" jsonschema_description:"Documents that must be ready first: server/db."`
}

type nameInput struct {
	Name string `json:"name" jsonschema:"required,minLength=1,maxLength=63" jsonschema_description:"Name of the volume."`
}

type optionalNameInput struct {
	Name string `json:"name,omitempty" jsonschema:"maxLength=63" jsonschema_description:"Name of an existing boot volume."`
}

type bootVolumeInput struct {
	Metadata optionalNameInput `json:"metadata,omitempty" jsonschema_description:"Attaches an existing boot volume instead of making one."`
	Spec     bootSpecInput     `json:"spec,omitempty" jsonschema_description:"The boot volume to make."`
}

type bootSpecInput struct {
	Type string   `json:"type,omitempty" jsonschema:"enum=qcow2,enum=raw,default=qcow2" jsonschema_description:"Format of the disk."`
	Size diskSize `json:"size,omitempty" jsonschema:"minimum=1,maximum=65536" jsonschema_description:"GiB, or text with a unit; at least the image's. Default: the image's virtual size, or 10 if that is more."`
}

type storageInput struct {
	Metadata nameInput        `json:"metadata" jsonschema:"required" jsonschema_description:"Names the volume."`
	Spec     *diskVolumeInput `json:"spec,omitempty" jsonschema_description:"The volume to make if none of that name exists."`
}

type diskVolumeInput struct {
	Type         string   `json:"type,omitempty" jsonschema:"enum=qcow2,enum=raw,default=qcow2" jsonschema_description:"Format of the disk."`
	Size         diskSize `json:"size" jsonschema:"required,minimum=1,maximum=65536" jsonschema_description:"GiB, or text with a unit: 20GiB, 1TiB."`
	Persistent   bool     `json:"persistent,omitempty" jsonschema_description:"Outlives the server."`
	StorageClass string   `json:"storageClass,omitempty" jsonschema:"maxLength=63" jsonschema_description:"The libvirt storage pool on the host."`
}

type volumeInput struct {
	diskVolumeInput
	Kind  string `json:"kind,omitempty" jsonschema:"enum=data,default=data" jsonschema_description:"A data disk."`
	Clone string `json:"clone,omitempty" jsonschema:"enum=linked,enum=full" jsonschema_description:"kind os: a linked clone of the image (default), or a full copy."`
	Image string `json:"image,omitempty" jsonschema_description:"kind os: the image."`
}

type nicInput struct {
	Network     string            `json:"networkname" jsonschema:"required,minLength=1,maxLength=63" jsonschema_description:"The Network it is on; host-bridge is the hypervisor's own."`
	Name        string            `json:"name,omitempty" jsonschema:"maxLength=80" jsonschema_description:"Its identity on the server, so that address and MAC stay when other NICs go. Default: the network's name and its ordinal there."`
	Address     oneOrMany[string] `json:"address,omitempty" jsonschema:"maxItems=16" jsonschema_description:"Static addresses, v4 or v6, with or without prefix length."`
	NetmaskLen  *int              `json:"netmasklen,omitempty" jsonschema:"minimum=1,maximum=128" jsonschema_description:"Prefix length of address; must be the subnet's."`
	Netmask     string            `json:"netmask,omitempty" jsonschema_description:"Mask of an IPv4 address; must be the subnet's."`
	MAC         string            `json:"mac,omitempty" jsonschema_description:"MAC address; default derived from the server and the NIC."`
	Routes      []routeInput      `json:"routes,omitempty" jsonschema:"maxItems=64" jsonschema_description:"Static routes."`
	Nameservers *nameserversInput `json:"nameservers,omitempty" jsonschema_description:"Resolvers of this NIC."`
	DHCP4       bool              `json:"dhcp4,omitempty" jsonschema_description:"Ask DHCP for an IPv4 address."`
	DHCP6       bool              `json:"dhcp6,omitempty" jsonschema_description:"Ask DHCP for an IPv6 address."`
	VLANs       oneOrMany[int]    `json:"vlans,omitempty" jsonschema:"maxItems=256" jsonschema_description:"One VLAN: an access port. Several: a trunk."`
	NativeVLAN  *int              `json:"nativeVlan,omitempty" jsonschema:"minimum=1,maximum=4094" jsonschema_description:"The trunk's untagged VLAN."`
	RateMbps    *int              `json:"rateMbps,omitempty" jsonschema:"minimum=1,maximum=400000" jsonschema_description:"Limit in Mbit/s, each way."`
}

type routeInput struct {
	To  string `json:"to" jsonschema:"required" jsonschema_description:"A CIDR, or default."`
	Via string `json:"via" jsonschema:"required" jsonschema_description:"The next hop, on a subnet of the NIC's network."`
}

type nameserversInput struct {
	Addresses []string `json:"addresses,omitempty" jsonschema:"maxItems=8" jsonschema_description:"Addresses of resolvers."`
	Search    []string `json:"search,omitempty" jsonschema:"maxItems=16" jsonschema_description:"Domains to search."`
}

type authInput struct {
	URL          oneOrMany[string] `json:"url,omitempty" jsonschema:"maxItems=32" jsonschema_description:"Where public keys are fetched: an https URL, github:USER or gitlab:USER."`
	PublicKey    oneOrMany[string] `json:"publicKey,omitempty" jsonschema:"maxItems=64" jsonschema_description:"Public keys; file:PATH reads them from beside the manifest."`
	User         *string           `json:"user,omitempty" jsonschema_description:"The login; default the image's. Excludes users."`
	Users        []string          `json:"users,omitempty" jsonschema:"maxItems=32" jsonschema_description:"The logins. Excludes user."`
	RootPassword string            `json:"rootPassword,omitempty" secret:"true" jsonschema:"maxLength=512" jsonschema_description:"A crypt hash, or secret:NAME, which burrow secret set NAME stores. Clear text is hashed before it goes anywhere."`
}

type ansibleInput struct {
	Playbook       oneOrMany[string] `json:"playbook,omitempty" jsonschema:"maxItems=32" jsonschema_description:"Playbooks, beside the manifest or in source. Required but where one runs in the guest."`
	Pull           *pullInput        `json:"pull,omitempty" jsonschema_description:"The playbook that the guest fetches by git, and runs in itself. Servers only."`
	RemotePlaybook string            `json:"remotePlaybook,omitempty" jsonschema:"maxLength=1000" jsonschema_description:"The playbook, beside the manifest, that goes into the guest with its folder, and runs there. Servers only."`
	Source         *gitSourceInput   `json:"source,omitempty" jsonschema_description:"The git repository that playbook and inventory are in, instead of beside the manifest."`
	Inventory      string            `json:"inventory,omitempty" jsonschema_description:"Your inventory, beside the manifest; burrow adds the server to it."`
	Requirements   string            `json:"requirements,omitempty" jsonschema_description:"Requirements file of ansible-galaxy, beside the manifest: roles and collections that are fetched for the run."`
	ExtraArgs      []string          `json:"extra-args,omitempty" jsonschema:"maxItems=64" jsonschema_description:"Further arguments of ansible-playbook."`
	ExtraVars      map[string]any    `json:"extraVars,omitempty" jsonschema_description:"Variables of the play. A text secret:NAME, anywhere in it, is that secret."`
	VaultPassword  string            `json:"vaultPassword,omitempty" secret:"true" jsonschema_description:"secret:NAME, which burrow secret set NAME stores: the password of what ansible-vault has encrypted."`
	BecomePassword string            `json:"becomePassword,omitempty" secret:"true" jsonschema_description:"secret:NAME: the password that become (sudo) asks for."`
	Tags           []string          `json:"tags,omitempty" jsonschema:"maxItems=64" jsonschema_description:"Only tasks with these tags."`
	SkipTags       []string          `json:"skipTags,omitempty" jsonschema:"maxItems=64" jsonschema_description:"Not tasks with these tags."`
	Retries        int               `json:"retries,omitempty" jsonschema:"minimum=0,maximum=100,default=3" jsonschema_description:"Runs again after a failed task."`
	Timeout        Duration          `json:"timeout,omitempty" jsonschema:"default=2h" jsonschema_description:"For one run: 30m, 2h."`
	OnFailure      OnFailure         `json:"onFailure,omitempty" jsonschema:"enum=hold,enum=rollback,enum=ignore,default=hold" jsonschema_description:"What happens when the retries are used up."`
}

type pullInput struct {
	URL      string `json:"url" jsonschema:"required,maxLength=1000" jsonschema_description:"Of the git repository, as the guest reaches it: https://HOST/PATH, ssh://git@HOST/PATH, git@HOST:PATH or file:///PATH, without a password."`
	Playbook string `json:"playbook_yaml,omitempty" jsonschema:"maxLength=1000,default=local.yml" jsonschema_description:"The playbook in it, by its path from the repository's top."`
}

type gitSourceInput struct {
	URL string `json:"url" jsonschema:"required,maxLength=1000" jsonschema_description:"https://HOST/PATH, ssh://git@HOST/PATH, git@HOST:PATH or file:///PATH, without a password."`
	Ref string `json:"ref,omitempty" jsonschema:"maxLength=250" jsonschema_description:"A branch, a tag or a whole commit id. Default: the repository's HEAD."`
}

type playbookInput struct {
	ansibleInput
	Targets   targetsInput `json:"targets" jsonschema:"required" jsonschema_description:"The servers it is for; it runs when all of them are Running."`
	DependsOn []string     `json:"dependsOn,omitempty" jsonschema:"maxItems=100" jsonschema_description:"Documents that must be ready first: playbook/base."`
}

type targetsInput struct {
	Servers  []string          `json:"servers,omitempty" jsonschema:"maxItems=500" jsonschema_description:"Names of servers."`
	Selector map[string]string `json:"selector,omitempty" jsonschema_description:"Every server that has these labels."`
}

type cloudInitInput struct {
	UserData      string `json:"userData,omitempty" jsonschema_description:"User data, or file:PATH."`
	NetworkConfig string `json:"networkConfig,omitempty" jsonschema_description:"Network configuration, or file:PATH."`
}

type placementInput struct {
	Selector map[string]string `json:"selector,omitempty" jsonschema_description:"Labels that the host must have."`
}

type networkInput struct {
	Subnets      []subnetInput `json:"subnets,omitempty" jsonschema:"maxItems=16" jsonschema_description:"Its subnets. None: the first free /24 of 172.16.100.0 to 172.16.199.0."`
	CIDR         string        `json:"iPNetworkAddress,omitempty" jsonschema_description:"One subnet, in the older form."`
	Mode         NetworkMode   `json:"mode,omitempty" jsonschema:"enum=nat,enum=isolated" jsonschema_description:"How it meets the world. Default: nat, or isolated when it has no gateway."`
	BridgeName   string        `json:"bridgeName,omitempty" jsonschema:"maxLength=15" jsonschema_description:"The bridge on the host. Default: br- and the name, shortened."`
	DNS          dnsInput      `json:"dns,omitempty" jsonschema_description:"Names of its servers."`
	DHCP         bool          `json:"dhcp,omitempty" jsonschema_description:"Also answer DHCP, with exactly the addresses that IPAM gave."`
	MTU          int           `json:"mtu,omitempty" jsonschema:"minimum=1280,maximum=9216,default=1500" jsonschema_description:"Largest packet."`
	VLAN         *int          `json:"vlan,omitempty" jsonschema:"minimum=1,maximum=4094" jsonschema_description:"Access VLAN of the whole network."`
	PortSecurity bool          `json:"portSecurity,omitempty" jsonschema:"default=true" jsonschema_description:"A port may only send from its own MAC and addresses."`
}

type subnetInput struct {
	CIDR     string   `json:"cidr" jsonschema:"required" jsonschema_description:"192.168.40.0/24; host bits are cleared."`
	Gateway  string   `json:"gateway,omitempty" jsonschema_description:"An address, or none. Default: the first address."`
	Range    string   `json:"range,omitempty" jsonschema_description:"Addresses to give out: a-b. Default: all but network, gateway and broadcast."`
	Reserved []string `json:"reserved,omitempty" jsonschema:"maxItems=256" jsonschema_description:"Addresses or ranges never to give out."`
}

type dnsInput struct {
	Domain     string   `json:"domain,omitempty" jsonschema:"maxLength=253" jsonschema_description:"Default: the network's name."`
	Forwarders []string `json:"forwarders,omitempty" jsonschema:"maxItems=8" jsonschema_description:"Resolvers for all other names."`
}

type imageInput struct {
	SourceURL   string `json:"sourceUrl" jsonschema:"required" jsonschema_description:"http(s) URL, or file:PATH."`
	SHA256      string `json:"sha256,omitempty" jsonschema_description:"Checksum of the download, in hex."`
	ChecksumURL string `json:"checksumUrl,omitempty" jsonschema_description:"A SHA256SUMS file that lists the download."`
	Format      string `json:"format,omitempty" jsonschema:"enum=qcow2,enum=raw,default=qcow2" jsonschema_description:"Format of the download."`
	User        string `json:"user,omitempty" jsonschema_description:"The default login."`
	OSName      string `json:"osName,omitempty" jsonschema:"maxLength=63" jsonschema_description:"For people."`
	OSVersion   string `json:"osVersion,omitempty" jsonschema:"maxLength=63" jsonschema_description:"For people."`
}
