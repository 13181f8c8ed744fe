package manifest

// dataVolume is a data disk's spec in normal form.
func dataVolume(in diskVolumeInput) *VolumeSpec {
	return &VolumeSpec{Type: in.Type, Size: int(in.Size), Kind: "data", Persistent: in.Persistent, StorageClass: in.StorageClass}
}

// volume brings a Volume's spec into its normal form.
func (d *decoder) volume(in volumeInput) *VolumeSpec {
	spec := dataVolume(in.diskVolumeInput)
	spec.Kind, spec.Clone, spec.Image = in.Kind, in.Clone, in.Image
	d.storageClass("spec.storageClass", in.StorageClass)
	d.name63(KindImage, "spec.image", in.Image)
	switch {
	case in.Kind == "os" && in.Image == "":
		d.complain("spec.image", "is required for kind os", "name the image that it is made from")
	case in.Kind == "os" && in.Clone == "":
		spec.Clone = "linked"
	case in.Kind == "data" && in.Image != "":
		d.complain("spec.image", "is for kind os only", "remove it, or write kind: os")
	case in.Kind == "data" && in.Clone != "":
		d.complain("spec.clone", "is for kind os only", "remove it, or write kind: os")
	}
	if in.Kind == "os" && spec.Clone == "linked" && in.Type == "raw" {
		d.complain("spec.type", "a linked clone cannot be raw", "use qcow2, or clone: full")
	}
	return spec
}

// storageClass checks the name of a libvirt pool.
func (d *decoder) storageClass(path, name string) {
	if name != "" && d.doc.sound(path) && !hostPattern.MatchString(name) {
		d.complain(path, quote(name)+" is not a storage pool's name", "see `virsh pool-list` on the host")
	}
}
