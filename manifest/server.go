package manifest

import (
	"fmt"
)

// server brings a Server's spec into its normal form.
func (d *decoder) server(in serverInput) *ServerSpec {
	spec := &ServerSpec{
		CPU: in.CPU, Memory: int(in.Memory), Image: in.Image,
		BootVolume: BootVolume{Name: in.BootVolume.Metadata.Name, Type: in.BootVolume.Spec.Type, Size: int(in.BootVolume.Spec.Size)},
		Autostart:  in.Autostart, OnFailure: in.OnFailure, Readiness: in.Readiness,
		Firmware: in.Firmware, Deadline: in.Deadline,
	}
	d.name63(KindImage, "spec.mmImage", in.Image)
	d.name63(KindVolume, "spec.bootVolume.metadata.name", in.BootVolume.Metadata.Name)
	d.duration("spec.deadline", in.Deadline)
	spec.Storage = d.storage(in.Storage)
	spec.NetworkInterface = d.nics(in.NetworkInterface)
	spec.Auth = d.auth(in.Auth)
	if in.Ansible != nil {
		spec.Ansible = d.ansible(*in.Ansible, "spec.ansible")
		if in.Readiness == ReadinessRunning {
			d.complain("spec.readiness", "running does not wait for a login, which the playbook needs", "use cloud-init or ssh")
		}
	}
	spec.CloudInit = d.cloudInit(in.CloudInit)
	spec.DependsOn = d.dependsOn(in.DependsOn)
	if in.Placement != nil && len(in.Placement.Selector) > 0 {
		d.labels("spec.placement.selector", in.Placement.Selector)
		spec.Placement = &Placement{Selector: in.Placement.Selector}
	}
	return spec
}

// name63 checks a reference's form; empty is for others to judge.
func (d *decoder) name63(kind Kind, path, name string) {
	if name == "" || !d.doc.sound(path) {
		return
	}
	if err := CheckName(kind, name); err != nil {
		d.complain(path, err.Error(), "")
	}
}

func (d *decoder) storage(in []storageInput) []Storage {
	var storage []Storage
	seen := map[string]int{}
	for i, s := range in {
		path := fmt.Sprintf("spec.storage[%d].metadata.name", i)
		d.name63(KindVolume, path, s.Metadata.Name)
		if first, twice := seen[s.Metadata.Name]; twice && s.Metadata.Name != "" {
			d.complain(path, fmt.Sprintf("%s is already spec.storage[%d]", quote(s.Metadata.Name), first), "attach a volume once")
		}
		seen[s.Metadata.Name] = i
		disk := Storage{Name: s.Metadata.Name}
		if s.Spec != nil {
			disk.Spec = dataVolume(*s.Spec)
		}
		storage = append(storage, disk)
	}
	return storage
}

// dependsOn gives references in their own form: "server/db".
func (d *decoder) dependsOn(in []string) []string {
	var refs []string
	for i, text := range in {
		path := d.doc.element("spec.dependsOn", i)
		if !d.doc.sound(path) {
			continue
		}
		kind, name, err := ParseKindName(text)
		if err != nil {
			d.complain(path, err.Error(), "")
			continue
		}
		refs = append(refs, Ref(kind, name))
	}
	return refs
}
