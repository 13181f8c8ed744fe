package volume

import (
	"context"
	"errors"
	"time"

	"libvirt.org/go/libvirtxml"

	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
)

const (
	// cleanupTimeout bounds the removal of a half-written volume after a failure.
	cleanupTimeout = 30 * time.Second
	// rawMargin is what a raw copy is at least larger than its image. A copy gets its
	// final size after its content, so that a smaller one is known for a torso.
	rawMargin = uint64(1) << 20
)

// ensure makes a disk stand as wanted: look, act, verify. What stands there and has no mark
// of ours is refused.
func (a *Activities) ensure(ctx context.Context, object string, w wanted) (manifest.Disk, error) {
	if w.attached {
		return a.lookUp(ctx, object, w.disk)
	}
	size, err := a.size(ctx, w)
	if err != nil {
		return w.disk, about(object, w.disk, err)
	}
	unlock, err := a.names.Lock(ctx, w.disk.Volume)
	if err != nil {
		return w.disk, about(object, w.disk, err)
	}
	defer unlock()
	made, err := a.marks.has(w.disk.Volume)
	if err != nil {
		return w.disk, about(object, w.disk, err)
	}
	var have *libvirtxml.StorageVolume
	if made {
		have, err = a.adopt(ctx, w, size)
	} else {
		have, err = a.makeFirst(ctx, w, size)
	}
	if err != nil {
		return w.disk, about(object, w.disk, err)
	}
	if err := a.grow(ctx, w, have, size); err != nil {
		return w.disk, about(object, w.disk, err)
	}
	return verify(object, w, have)
}

// makeFirst marks a volume as ours and makes it. The order is what makes the mark true:
// nothing of that name is there when it is written, and nothing of ours is made before.
func (a *Activities) makeFirst(ctx context.Context, w wanted, size uint64) (*libvirtxml.StorageVolume, error) {
	path, there, err := a.file(ctx, w.disk.Volume)
	if err != nil {
		return nil, err
	}
	if there {
		return nil, errs.NewPermanent("volume "+w.disk.Volume, "make",
			errs.Reason("%w: %s was there already", errs.ErrNotManaged, path), "move that file away, then apply again")
	}
	if err := a.marks.add(w.disk.Volume); err != nil {
		return nil, err
	}
	have, err := a.create(ctx, w, size)
	if errors.Is(err, errs.ErrExists) {
		// Somebody was quicker, this very moment: it is not ours, and the next attempt says so.
		err = errors.Join(err, a.marks.drop(w.disk.Volume))
	}
	return have, err
}

// adopt takes what an earlier attempt of ours has made, and makes what it has not.
func (a *Activities) adopt(ctx context.Context, w wanted, size uint64) (*libvirtxml.StorageVolume, error) {
	have, err := a.cfg.Libvirt.Volume(ctx, w.disk.Pool, w.disk.Volume)
	if err == nil && torso(have, w, size) {
		a.cfg.Log.Info("making a half-written volume again", "volume", w.disk.Volume)
		if err := a.erase(ctx, w.disk.Volume); err != nil {
			return nil, err
		}
		err = errs.ErrNotFound
	}
	if errors.Is(err, errs.ErrNotFound) {
		return a.create(ctx, w, size)
	}
	return have, err
}

// size gives the bytes a disk shall have.
func (a *Activities) size(ctx context.Context, w wanted) (uint64, error) {
	size := uint64(w.disk.SizeGiB) * gib
	if w.over == nil || w.disk.Format != "raw" {
		return size, nil
	}
	image, err := a.imageVolume(ctx, w)
	if err != nil {
		return 0, err
	}
	return max(size, image.Capacity.Value+rawMargin), nil
}

// imageVolume finds the image in the pool; it may have been put there past libvirt.
func (a *Activities) imageVolume(ctx context.Context, w wanted) (*libvirtxml.StorageVolume, error) {
	image, err := a.cfg.Libvirt.Volume(ctx, w.over.Pool, w.over.Volume)
	if !errors.Is(err, errs.ErrNotFound) {
		return image, err
	}
	if err := a.cfg.Libvirt.RefreshPool(ctx, w.over.Pool); err != nil {
		return nil, err
	}
	return a.cfg.Libvirt.Volume(ctx, w.over.Pool, w.over.Volume)
}

// torso reports whether a volume of ours is what an interrupted create left: a qcow2 file
// that is none yet, or a raw copy that never got its final size. What libvirt takes a raw
// file for says nothing: its content is the guest's.
func torso(have *libvirtxml.StorageVolume, w wanted, size uint64) bool {
	if w.disk.Format == "qcow2" {
		return format(have) != "qcow2"
	}
	return w.over != nil && have.Capacity.Value < size
}

func format(v *libvirtxml.StorageVolume) string {
	if v.Target == nil || v.Target.Format == nil {
		return ""
	}
	return v.Target.Format.Type
}

// create makes a volume. What a failure leaves of it is deleted at once, unless libvirt is
// still busy with it: then the undo finds it.
func (a *Activities) create(ctx context.Context, w wanted, size uint64) (*libvirtxml.StorageVolume, error) {
	def := definition(w, size)
	var err error
	if w.over != nil && w.disk.Format == "raw" {
		def.Capacity.Value = 0 // the image's, until the content is there
		err = a.cfg.Libvirt.CloneVolume(ctx, w.disk.Pool, def, w.over.Volume)
		if err == nil {
			err = a.cfg.Libvirt.ResizeVolume(ctx, w.disk.Pool, w.disk.Volume, size)
		}
	} else {
		err = a.cfg.Libvirt.CreateVolume(ctx, w.disk.Pool, def)
	}
	if errors.Is(err, errs.ErrExists) {
		// A file that libvirt had not seen, and has now: the next attempt judges it.
		return nil, errs.NewTransient("volume "+w.disk.Volume, "create", err)
	}
	if err != nil {
		a.sweep(ctx, w.disk.Volume)
		return nil, err
	}
	return a.cfg.Libvirt.Volume(ctx, w.disk.Pool, w.disk.Volume)
}

// sweep deletes a half-written volume and its mark, even when the operation was cancelled
// meanwhile.
func (a *Activities) sweep(ctx context.Context, name string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	if err := a.forget(ctx, name); err != nil {
		a.cfg.Log.Warn("a half-written volume is left to the undo", "volume", name, "err", err)
	}
}

// definition is the volume for libvirt: sparse, over the image when it is a linked one.
func definition(w wanted, size uint64) *libvirtxml.StorageVolume {
	def := &libvirtxml.StorageVolume{
		Name: w.disk.Volume, Capacity: &libvirtxml.StorageVolumeSize{Value: size}, Allocation: &libvirtxml.StorageVolumeSize{},
		Target: &libvirtxml.StorageVolumeTarget{Format: &libvirtxml.StorageVolumeTargetFormat{Type: w.disk.Format}},
	}
	if len(w.disk.Backing) > 0 {
		def.BackingStore = &libvirtxml.StorageVolumeBackingStore{
			Path: w.disk.Backing[0].Path, Format: &libvirtxml.StorageVolumeTargetFormat{Type: w.disk.Backing[0].Format},
		}
	}
	return def
}

// grow grows a volume that is smaller than wanted; one that is larger stays (pitfall 10).
func (a *Activities) grow(ctx context.Context, w wanted, have *libvirtxml.StorageVolume, size uint64) error {
	if have.Capacity.Value >= size {
		return nil
	}
	return a.cfg.Libvirt.ResizeVolume(ctx, w.disk.Pool, w.disk.Volume, size)
}

// verify fills in where the disk is, and refuses one that stands over another image.
func verify(object string, w wanted, have *libvirtxml.StorageVolume) (manifest.Disk, error) {
	disk := w.disk
	disk.Path = have.Target.Path
	backing := ""
	if have.BackingStore != nil {
		backing = have.BackingStore.Path
	}
	if len(disk.Backing) > 0 && backing != disk.Backing[0].Path {
		return disk, errs.NewPermanent(object, "use volume "+disk.Volume,
			errs.Reason("%w: it stands over %q, not over %q", errs.ErrConflict, backing, disk.Backing[0].Path), "delete the server and apply it again")
	}
	return disk, nil
}

// lookUp finds an attached disk and what it stands over.
func (a *Activities) lookUp(ctx context.Context, object string, disk manifest.Disk) (manifest.Disk, error) {
	have, err := a.cfg.Libvirt.Volume(ctx, disk.Pool, disk.Volume)
	if errors.Is(err, errs.ErrNotFound) {
		return disk, errs.NewPermanent(object, "attach "+manifest.Ref(manifest.KindVolume, disk.Name), err,
			"its storage is gone from pool "+disk.Pool+": bring the file back, or delete the Volume and apply it again")
	}
	if err != nil {
		return disk, about(object, disk, err)
	}
	disk.Path = have.Target.Path
	// Only of a qcow2: in a raw disk the guest could write a header that names any file.
	if b := have.BackingStore; disk.Format == "qcow2" && b != nil && b.Format != nil {
		disk.Backing = []manifest.Backing{{Path: b.Path, Format: b.Format.Type}}
	}
	return disk, nil
}

// about names the server and the disk in a driver's error, and keeps its class.
func about(object string, disk manifest.Disk, err error) error {
	return errs.New(errs.ClassOf(err), object, "make disk "+disk.Name, err, "")
}
