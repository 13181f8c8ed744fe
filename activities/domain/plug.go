package domain

import (
	"context"
	"errors"

	"libvirt.org/go/libvirtxml"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
)

const gib = uint64(1) << 30

// Plug plugs disks into the server's running domain. One that is there already, and a
// domain that is off, are success: the next start defines it anew, with all its disks.
func (a *Activities) Plug(ctx context.Context, in PlugIn) (activities.Nothing, error) {
	def, err := a.running(ctx, in.Server, "plug in disks")
	if err != nil || def == nil {
		return activities.Nothing{}, err
	}
	for _, d := range in.Disks {
		have := diskAt(def, d.Target)
		switch {
		case have != nil && sourceOf(have) == d.Path:
			continue
		case have != nil:
			return activities.Nothing{}, errs.NewPermanent(in.Server.Ref(), "plug in disk "+d.Name,
				errs.Reason("%w: %s is %s", errs.ErrConflict, d.Target, sourceOf(have)), "restart the server: burrow restart "+in.Server.Name)
		}
		if err := checkFiles(StartIn{Server: in.Server, Disks: []manifest.Disk{d}}); err != nil {
			return activities.Nothing{}, err
		}
		device := disk(d, false)
		if err := a.cfg.Libvirt.AttachDisk(ctx, manifest.DomainUUID(in.Server.UID), &device); err != nil {
			return activities.Nothing{}, about(in.Server, "plug in disk "+d.Name, err)
		}
	}
	return activities.Nothing{}, nil
}

// Unplug takes disks off the server's running domain, and waits until the guest has let
// them go. None, and a domain that is off, are success.
//
// A guest that does not let go → Operator.
func (a *Activities) Unplug(ctx context.Context, in PlugIn) (activities.Nothing, error) {
	for _, d := range in.Disks {
		if err := a.unplug(ctx, in.Server, d); err != nil {
			return activities.Nothing{}, err
		}
	}
	return activities.Nothing{}, nil
}

func (a *Activities) unplug(ctx context.Context, server activities.Server, d manifest.Disk) error {
	action := "unplug disk " + d.Name
	left, err := a.askBack(ctx, server, action, func(def *libvirtxml.Domain) []device {
		have := diskAt(def, d.Target)
		if have == nil || sourceOf(have) != d.Path {
			return nil
		}
		return []device{{d.Target, func() error { return a.cfg.Libvirt.DetachDisk(ctx, manifest.DomainUUID(server.UID), have) }}}
	})
	if err != nil || len(left.names) == 0 {
		return err
	}
	return errs.NewOperator(server.Ref(), action, errors.Join(errs.Reason("the guest does not let go of %s", d.Target), left.refused),
		"umount it in the guest, or stop the guest: burrow ssh "+server.Name+" -- sudo poweroff")
}

// Grow makes a disk of the server's own at least so large: QEMU does it and tells the
// guest, or the pool does while the domain is off. A larger one is success, and stays.
func (a *Activities) Grow(ctx context.Context, in GrowIn) (GrowOut, error) {
	action, want := "grow disk "+in.Disk.Name, uint64(in.GiB)*gib
	if !in.Disk.Owned {
		return GrowOut{}, errs.NewPermanent(in.Server.Ref(), action, errs.Reason("%w: it is a Volume of its own", errs.ErrNotManaged), "")
	}
	def, err := a.running(ctx, in.Server, action)
	if err != nil {
		return GrowOut{}, err
	}
	size, resize := a.inPool(in.Disk)
	if def != nil {
		size, resize = a.inGuest(in.Server, in.Disk)
	}
	have, err := size(ctx)
	if err == nil && have < want {
		have, err = want, resize(ctx, want)
	}
	if err != nil {
		return GrowOut{}, about(in.Server, action, err)
	}
	return GrowOut{GiB: int(have / gib)}, nil
}

// inPool sees and sets the size, in bytes, of a disk that no guest has open.
func (a *Activities) inPool(d manifest.Disk) (size func(context.Context) (uint64, error), resize func(context.Context, uint64) error) {
	size = func(ctx context.Context) (uint64, error) {
		have, err := a.cfg.Libvirt.Volume(ctx, d.Pool, d.Volume)
		if err != nil {
			return 0, err
		}
		return have.Capacity.Value, nil
	}
	return size, func(ctx context.Context, want uint64) error {
		return a.cfg.Libvirt.ResizeVolume(ctx, d.Pool, d.Volume, want)
	}
}

// inGuest is inPool for a disk of a running guest.
func (a *Activities) inGuest(s activities.Server, d manifest.Disk) (size func(context.Context) (uint64, error), resize func(context.Context, uint64) error) {
	id := manifest.DomainUUID(s.UID)
	size = func(ctx context.Context) (uint64, error) { return a.cfg.Libvirt.DiskSize(ctx, id, d.Target) }
	return size, func(ctx context.Context, want uint64) error { return a.cfg.Libvirt.GrowDisk(ctx, id, d.Target, want) }
}

// running describes the server's domain; nil when it is off or not there.
func (a *Activities) running(ctx context.Context, server activities.Server, action string) (*libvirtxml.Domain, error) {
	state, err := a.own(ctx, server, action)
	if errors.Is(err, errs.ErrNotFound) {
		return nil, nil
	}
	if err != nil || !active(state) {
		return nil, err
	}
	def, err := a.cfg.Libvirt.DomainXML(ctx, manifest.DomainUUID(server.UID))
	if err != nil {
		return nil, about(server, action, err)
	}
	return def, nil
}

func diskAt(def *libvirtxml.Domain, target string) *libvirtxml.DomainDisk {
	if def.Devices == nil {
		return nil
	}
	for i, d := range def.Devices.Disks {
		if d.Target != nil && d.Target.Dev == target {
			return &def.Devices.Disks[i]
		}
	}
	return nil
}

func sourceOf(d *libvirtxml.DomainDisk) string {
	if d.Source == nil || d.Source.File == nil {
		return ""
	}
	return d.Source.File.File
}
