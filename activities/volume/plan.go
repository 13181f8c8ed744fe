package volume

import (
	"fmt"

	"burrow.dev/burrow/activities/image"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
)

const (
	gib = uint64(1) << 30
	// defaultBootGiB is a boot disk's size when the server names none and the image is smaller.
	defaultBootGiB = 10
	// maxTargets is how many letters there are behind "vd".
	maxTargets = 26
)

// wanted is a disk as it shall stand there.
type wanted struct {
	disk manifest.Disk // Path is filled when it is known
	// over is the image the disk is linked to or copied from; nil: it begins empty.
	over *image.EnsureOut
	// attached: made by another operation; it is looked up and never changed.
	attached bool
}

// plan settles every disk of a server before anything is made.
func (a *Activities) plan(in BuildIn) ([]wanted, error) {
	object := in.Server.Ref()
	if err := checkUID(object, in.Server.UID); err != nil {
		return nil, err
	}
	if n := 1 + len(in.Storage); n > maxTargets {
		return nil, errs.NewPermanent(object, "attach disks", errs.Reason("%w: %d disks, at most %d", errs.ErrInvalid, n, maxTargets), "use fewer, larger disks")
	}
	boot, err := a.boot(in)
	if err != nil {
		return nil, err
	}
	all := []wanted{boot}
	for _, s := range in.Storage {
		w, err := a.data(in, s)
		if err != nil {
			return nil, err
		}
		all = append(all, w)
	}
	for i := range all {
		all[i].disk.Target = fmt.Sprintf("vd%c", 'a'+i)
	}
	return all, nil
}

// boot settles the boot disk: an existing volume when one is named, else the image.
func (a *Activities) boot(in BuildIn) (wanted, error) {
	if in.Boot.Name != "" {
		w, err := attached(in, in.Boot.Name)
		w.disk.Name = "boot"
		return w, err
	}
	format, err := checkFormat(in.Server.Ref(), in.Boot.Type)
	if err != nil {
		return wanted{}, err
	}
	size := in.Boot.Size
	if size == 0 {
		size = max(in.Image.VirtualGiB, defaultBootGiB)
	}
	if size < in.Image.VirtualGiB {
		return wanted{}, errs.NewPermanent(in.Server.Ref(), "size boot volume",
			errs.Reason("%w: %d GiB is less than the image's %d GiB", errs.ErrInvalid, size, in.Image.VirtualGiB),
			fmt.Sprintf("set spec.bootVolume.spec.size to %d or more", in.Image.VirtualGiB))
	}
	w := wanted{over: &in.Image, disk: manifest.Disk{
		Name: "boot", Pool: a.cfg.Pool, Volume: bootVolume(in.Server.Name, in.Server.UID, mainBoot, format),
		Format: format, Serial: manifest.DiskSerial("boot"), SizeGiB: size, Owned: true,
	}}
	if format == "qcow2" {
		w.disk.Backing = []manifest.Backing{{Path: in.Image.Path, Format: in.Image.Format}}
	}
	return w, nil
}

// data settles a data disk: the Volume of that name when there is one, else one of the
// server's own.
func (a *Activities) data(in BuildIn, s manifest.Storage) (wanted, error) {
	if s.Spec == nil || record(in, s.Name) != nil {
		return attached(in, s.Name)
	}
	return a.dataOf(in.Server.Ref(), manifest.Disk{Name: s.Name, Owned: true}, s.Spec, func(format string) string {
		return dataVolume(in.Server.Name, in.Server.UID, s.Name, format)
	})
}

// dataOf settles an empty volume as a spec describes it.
func (a *Activities) dataOf(object string, disk manifest.Disk, spec *manifest.VolumeSpec, name func(format string) string) (wanted, error) {
	format, err := checkFormat(object, spec.Type)
	switch {
	case err != nil:
		return wanted{}, err
	case spec.StorageClass != "":
		return wanted{}, unsupported(object, "storageClass "+spec.StorageClass)
	case spec.Kind != "" && spec.Kind != "data":
		return wanted{}, unsupported(object, "kind "+spec.Kind)
	case spec.Size <= 0:
		return wanted{}, errs.NewPermanent(object, "size volume", errs.Reason("%w: volume %s has no size", errs.ErrInvalid, disk.Name), "say its size in GiB")
	}
	disk.Pool, disk.Format, disk.Volume = a.cfg.Pool, format, name(format)
	disk.Serial, disk.SizeGiB = manifest.DiskSerial(disk.Name), spec.Size
	return wanted{disk: disk}, nil
}

func unsupported(object, what string) error {
	return errs.NewPermanent(object, "make volume", errs.Reason("%w: %s is not supported yet", errs.ErrInvalid, what), "leave it out")
}

// record finds the record of an attached Volume.
func record(in BuildIn, name string) *manifest.Record {
	for i := range in.Attached {
		if in.Attached[i].Metadata.Name == name {
			return &in.Attached[i]
		}
	}
	return nil
}

// attached settles a disk that is a Volume resource.
func attached(in BuildIn, name string) (wanted, error) {
	rec := record(in, name)
	if rec == nil || rec.Status.Volume == nil {
		return wanted{}, errs.NewPermanent(in.Server.Ref(), "attach "+manifest.Ref(manifest.KindVolume, name),
			errs.Reason("%w: no such Volume is ready", errs.ErrNotFound), "apply a Volume of that name first, or give the disk a spec")
	}
	v := rec.Status.Volume
	return wanted{attached: true, disk: manifest.Disk{
		Name: name, Pool: v.Pool, Volume: v.Volume, Path: v.Path, Format: v.Format, Serial: v.Serial, SizeGiB: v.SizeGiB,
	}}, nil
}
