package domain

import (
	"encoding/xml"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/google/uuid"
	"libvirt.org/go/libvirtxml"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/manifest"
)

// Namespace is that of the element which marks a domain as burrow's.
const Namespace = "https://burrow.dev/xmlns/1"

// KVM is the accelerator of domains of libvirt's type kvm; any other is TCG.
const KVM = "kvm"

// maxConsoleLogs is how many rotated files virtlogd keeps beside a console's log.
const maxConsoleLogs = 3

// ConsoleLog is the file that a server's serial console is copied into.
func ConsoleLog(dir, uid string) string { return filepath.Join(dir, uid+".log") }

// InterfaceID is the id of a NIC's port in libvirt's eyes: a UUID, as libvirt wants one,
// that stays the same for the same NIC of the same server.
func InterfaceID(uid, nic string) string {
	space, err := uuid.Parse(uid)
	if err != nil {
		space = uuid.NameSpaceOID
	}
	return uuid.NewSHA1(space, []byte(nic)).String()
}

const (
	// fixedSlots are the PCI slots of what every domain has: SCSI, serial channels, random
	// numbers, balloon.
	fixedSlots = 4
	// spareSlots are for disks and NICs that are plugged in later: on this machine type only a slot
	// that was defined can be filled.
	spareSlots = 4
)

// mark is the metadata element.
type mark struct {
	XMLName xml.Name `xml:"burrow:server"`
	XMLNS   string   `xml:"xmlns:burrow,attr"`
	UID     string   `xml:"uid,attr"`
	Name    string   `xml:"name,attr"`
}

// environment is what a definition depends on beside the server itself.
type environment struct {
	accelerator string
	consoleDir  string
	// userspace names the bridges whose datapath is userspace.
	userspace map[string]bool
}

// definition is a server as a domain.
func definition(in StartIn, env environment) (*libvirtxml.Domain, error) {
	text, err := xml.Marshal(mark{XMLNS: Namespace, UID: in.Server.UID, Name: in.Server.Name})
	if err != nil {
		return nil, err
	}
	def := &libvirtxml.Domain{
		Name: in.Server.Name, UUID: manifest.DomainUUID(in.Server.UID), Title: in.Server.Ref(),
		Metadata:   &libvirtxml.DomainMetadata{XML: string(text)},
		Memory:     &libvirtxml.DomainMemory{Value: uint(in.Memory), Unit: "MiB"},
		VCPU:       &libvirtxml.DomainVCPU{Placement: "static", Current: uint(in.CPU), Value: uint(sockets(in.CPU))},
		OS:         operatingSystem(),
		Features:   &libvirtxml.DomainFeatureList{ACPI: &libvirtxml.DomainFeature{}, APIC: &libvirtxml.DomainFeatureAPIC{}},
		Clock:      &libvirtxml.DomainClock{Offset: "utc"},
		OnPoweroff: "destroy", OnReboot: "restart", OnCrash: "restart",
		Devices: devices(in, env),
	}
	if env.accelerator == KVM {
		def.Type = "kvm"
		def.CPU = &libvirtxml.DomainCPU{Mode: "host-passthrough", Check: "none", Migratable: "on"}
	} else {
		// QEMU runs TCG with a thread for each CPU by itself, as guest and host are both x86.
		def.Type = "qemu"
		def.CPU = &libvirtxml.DomainCPU{Mode: "maximum", Check: "none", Migratable: "on"}
	}
	return def, nil
}

// operatingSystem is a PC whose firmware speaks on the serial port, so that "No bootable
// device" is in the console's log too.
func operatingSystem() *libvirtxml.DomainOS {
	return &libvirtxml.DomainOS{
		Type: &libvirtxml.DomainOSType{Arch: "x86_64", Machine: "q35", Type: "hvm"},
		BIOS: &libvirtxml.DomainBIOS{UseSerial: "yes"},
	}
}

// devices are the few that a server needs. No graphics: every emulated device costs a
// guest under TCG boot time, and a text screen costs most of all.
func devices(in StartIn, env environment) *libvirtxml.DomainDeviceList {
	first := uint(0)
	list := &libvirtxml.DomainDeviceList{
		Controllers: []libvirtxml.DomainController{
			{Type: "usb", Model: "none"},
			{Type: "scsi", Index: &first, Model: "virtio-scsi"},
		},
		Serials: []libvirtxml.DomainSerial{{
			Source: &libvirtxml.DomainChardevSource{Pty: &libvirtxml.DomainChardevSourcePty{}},
			Target: &libvirtxml.DomainSerialTarget{Port: &first},
			Log:    &libvirtxml.DomainChardevLog{File: ConsoleLog(env.consoleDir, in.Server.UID), Append: "off"},
		}},
		Channels: []libvirtxml.DomainChannel{{
			Source: &libvirtxml.DomainChardevSource{UNIX: &libvirtxml.DomainChardevSourceUNIX{}},
			Target: &libvirtxml.DomainChannelTarget{VirtIO: &libvirtxml.DomainChannelTargetVirtIO{Name: "org.qemu.guest_agent.0"}},
		}},
		RNGs: []libvirtxml.DomainRNG{{
			Model:   "virtio",
			Backend: &libvirtxml.DomainRNGBackend{Random: &libvirtxml.DomainRNGBackendRandom{Device: "/dev/urandom"}},
		}},
		MemBalloon: &libvirtxml.DomainMemBalloon{Model: "virtio"},
	}
	list.Controllers = append(list.Controllers, libvirtxml.DomainController{Type: "pci", Index: &first, Model: "pcie-root"})
	for range len(in.Disks) + len(in.Ports) + fixedSlots + spareSlots {
		list.Controllers = append(list.Controllers, libvirtxml.DomainController{Type: "pci", Model: "pcie-root-port"})
	}
	for i, d := range in.Disks {
		list.Disks = append(list.Disks, disk(d, i == 0))
	}
	if in.Seed != "" {
		list.Disks = append(list.Disks, cdrom(in.Seed))
	}
	for _, p := range in.Ports {
		list.Interfaces = append(list.Interfaces, nic(in.Server, p, env.userspace[p.Bridge]))
	}
	return list
}

// disk writes a volume with its whole backing chain: the security helper opens exactly
// what is written here, and QEMU probes nothing (pitfall 5).
func disk(d manifest.Disk, boot bool) libvirtxml.DomainDisk {
	out := libvirtxml.DomainDisk{
		Device: "disk", Driver: &libvirtxml.DomainDiskDriver{Name: "qemu", Type: d.Format, Discard: "unmap"},
		Source: file(d.Path), BackingStore: chain(d.Backing),
		Target: &libvirtxml.DomainDiskTarget{Dev: d.Target, Bus: "virtio"}, Serial: d.Serial,
	}
	if boot {
		out.Boot = &libvirtxml.DomainDeviceBoot{Order: 1}
	}
	return out
}

// chain writes what is below a disk; an empty element ends it.
func chain(below []manifest.Backing) *libvirtxml.DomainDiskBackingStore {
	out := &libvirtxml.DomainDiskBackingStore{}
	for _, b := range slices.Backward(below) {
		out = &libvirtxml.DomainDiskBackingStore{Format: &libvirtxml.DomainDiskFormat{Type: b.Format}, Source: file(b.Path), BackingStore: out}
	}
	return out
}

func file(path string) *libvirtxml.DomainDiskSource {
	return &libvirtxml.DomainDiskSource{File: &libvirtxml.DomainDiskSourceFile{File: path}}
}

// cdrom is the seed. On virtio-scsi, not SATA: cloud kernels have no AHCI driver.
func cdrom(path string) libvirtxml.DomainDisk {
	return libvirtxml.DomainDisk{
		Device: "cdrom", Driver: &libvirtxml.DomainDiskDriver{Name: "qemu", Type: "raw"}, Source: file(path),
		BackingStore: &libvirtxml.DomainDiskBackingStore{}, ReadOnly: &libvirtxml.DomainDiskReadOnly{},
		Target: &libvirtxml.DomainDiskTarget{Dev: "sda", Bus: "scsi"},
	}
}

// nic is a port on an Open vSwitch bridge. libvirt sets its VLANs together with the port,
// so that they are there again when somebody starts the domain by hand (pitfall 29).
func nic(server activities.Server, p manifest.Port, userspace bool) libvirtxml.DomainInterface {
	out := libvirtxml.DomainInterface{
		MAC:    &libvirtxml.DomainInterfaceMAC{Address: p.MAC},
		Source: &libvirtxml.DomainInterfaceSource{Bridge: &libvirtxml.DomainInterfaceSourceBridge{Bridge: p.Bridge}},
		VirtualPort: &libvirtxml.DomainInterfaceVirtualPort{Params: &libvirtxml.DomainInterfaceVirtualPortParams{
			OpenVSwitch: &libvirtxml.DomainInterfaceVirtualPortParamsOpenVSwitch{InterfaceID: InterfaceID(server.UID, p.Name)},
		}},
		VLan:   vlans(p),
		Target: &libvirtxml.DomainInterfaceTarget{Dev: p.Device},
		Model:  &libvirtxml.DomainInterfaceModel{Type: "virtio"},
		// Servers boot from their disk: a boot ROM on each NIC would only cost seconds.
		ROM: &libvirtxml.DomainROM{Enabled: "no"},
	}
	if p.MTU > 0 {
		out.MTU = &libvirtxml.DomainInterfaceMTU{Size: uint(p.MTU)}
	}
	if userspace {
		out.Driver = withoutOffloads()
	}
	return out
}

// vlans are a NIC's: one is access, several are a trunk, whose native one is untagged.
func vlans(p manifest.Port) *libvirtxml.DomainInterfaceVLan {
	ids := p.VLANs
	if p.NativeVLAN != 0 && !slices.Contains(ids, p.NativeVLAN) {
		ids = append([]int{p.NativeVLAN}, ids...)
	}
	if len(ids) == 0 {
		return nil
	}
	out := &libvirtxml.DomainInterfaceVLan{}
	for _, id := range ids {
		tag := libvirtxml.DomainInterfaceVLanTag{ID: uint(id)}
		if len(ids) > 1 && id == p.NativeVLAN {
			tag.NativeMode = "untagged"
		}
		out.Tags = append(out.Tags, tag)
	}
	if len(ids) > 1 {
		out.Trunk = "yes"
	}
	return out
}

// withoutOffloads makes the guest finish its own checksums and segments: nobody does it
// behind it on a userspace datapath (pitfall 37).
func withoutOffloads() *libvirtxml.DomainInterfaceDriver {
	const off = "off"
	return &libvirtxml.DomainInterfaceDriver{
		Name:  "qemu",
		Host:  &libvirtxml.DomainInterfaceDriverHost{CSum: off, GSO: off, TSO4: off, TSO6: off, ECN: off, UFO: off, MrgRXBuf: off},
		Guest: &libvirtxml.DomainInterfaceDriverGuest{CSum: off, TSO4: off, TSO6: off, ECN: off, UFO: off},
	}
}

// consoleLogs are the files that a server's console may have left.
func consoleLogs(dir, uid string) []string {
	log := ConsoleLog(dir, uid)
	all := []string{log}
	for i := range maxConsoleLogs {
		all = append(all, fmt.Sprintf("%s.%d", log, i))
	}
	return all
}
