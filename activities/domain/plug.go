package domain

import (
	"context"
	"errors"
	"time"

	"libvirt.org/go/libvirtxml"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
)

const (
	gib = uint64(1) << 30
	// letGo is how long a guest may take to let a disk go; it has to answer the request.
	letGo = 20 * time.Second
	// askEvery is how often it is asked again: a guest that is still booting does not hear it.
	askEvery = 5 * time.Second
)

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
	end, cancel := context.WithTimeout(ctx, letGo)
	defer cancel()
	ask, look := time.NewTicker(askEvery), time.NewTicker(lookEvery)
	defer ask.Stop()
	defer look.Stop()
	asked := false
	var refused error
	for {
		def, err := a.running(ctx, server, action)
		if err != nil || def == nil {
			return err
		}
		have := diskAt(def, d.Target)
		if have == nil || sourceOf(have) != d.Path {
			return nil
		}
		if !asked {
			// That it is being unplugged already, or did not answer in time, shows above.
			refused, asked = a.cfg.Libvirt.DetachDisk(ctx, manifest.DomainUUID(server.UID), have), true
		}
		select {
		case <-end.Done():
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return errs.NewOperator(server.Ref(), action, errors.Join(errs.Reason("the guest does not let go of %s", d.Target), refused),
				"umount it in the guest, or stop the guest: burrow ssh "+server.Name+" -- sudo poweroff")
		case <-ask.C:
			asked = false
		case <-look.C:
		}
	}
}

// Grow makes a disk of the server's own at least so large: QEMU does it and tells the
// guest, or the pool does while the domain is off. A larger one is success.
func (a *Activities) Grow(ctx context.Context, in GrowIn) (activities.Nothing, error) {
	action, want := "grow disk "+in.Disk.Name, uint64(in.GiB)*gib
	if !in.Disk.Owned {
		return activities.Nothing{}, errs.NewPermanent(in.Server.Ref(), action, errs.Reason("%w: it is a Volume of its own", errs.ErrNotManaged), "")
	}
	def, err := a.running(ctx, in.Server, action)
	if err != nil {
		return activities.Nothing{}, err
	}
	if def == nil {
		have, err := a.cfg.Libvirt.Volume(ctx, in.Disk.Pool, in.Disk.Volume)
		if err == nil && have.Capacity.Value < want {
			err = a.cfg.Libvirt.ResizeVolume(ctx, in.Disk.Pool, in.Disk.Volume, want)
		}
		if err != nil {
			return activities.Nothing{}, about(in.Server, action, err)
		}
		return activities.Nothing{}, nil
	}
	id := manifest.DomainUUID(in.Server.UID)
	have, err := a.cfg.Libvirt.DiskSize(ctx, id, in.Disk.Target)
	if err == nil && have < want {
		err = a.cfg.Libvirt.GrowDisk(ctx, id, in.Disk.Target, want)
	}
	if err != nil {
		return activities.Nothing{}, about(in.Server, action, err)
	}
	return activities.Nothing{}, nil
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
