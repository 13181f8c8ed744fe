package volume

import (
	"context"
	"errors"
	"path/filepath"
	"slices"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
)

// Rebuild makes a new boot volume beside the one in use, under the other of the server's
// two names. What an earlier rebuild left under that name is deleted first: it is nobody's.
func (a *Activities) Rebuild(ctx context.Context, in RebuildIn) (RebuildOut, error) {
	if err := a.checkInUse(in.Server, in.InUse); err != nil {
		return RebuildOut{}, err
	}
	w, err := a.boot(BuildIn{Server: in.Server, Image: in.Image, Boot: in.Boot})
	if err != nil {
		return RebuildOut{}, err
	}
	w.disk.Target = "vda"
	if slices.Contains(bootVolumes(in.Server.Name, in.Server.UID, mainBoot), in.InUse) {
		w.disk.Volume = bootVolume(in.Server.Name, in.Server.UID, otherBoot, w.disk.Format)
	}
	if _, err := a.Discard(ctx, DiscardIn{Server: in.Server, InUse: in.InUse}); err != nil {
		return RebuildOut{}, err
	}
	disk, err := a.ensure(ctx, in.Server.Ref(), w)
	return RebuildOut{Disk: disk}, err
}

// Discard deletes the server's boot volumes but the one in use. None is success. One that
// the guest runs from all the same is kept → Permanent: a rebuild that was lost left it so,
// and while an operation waits nobody can restart the guest.
func (a *Activities) Discard(ctx context.Context, in DiscardIn) (activities.Nothing, error) {
	if err := a.checkInUse(in.Server, in.InUse); err != nil {
		return activities.Nothing{}, err
	}
	runs, err := a.cfg.Libvirt.RunningDisks(ctx, manifest.DomainUUID(in.Server.UID))
	if err != nil {
		return activities.Nothing{}, errs.New(errs.ClassOf(err), in.Server.Ref(), "see which boot volume its guest runs from", err, "")
	}
	var failed error
	for _, name := range bootVolumes(in.Server.Name, in.Server.UID, mainBoot, otherBoot) {
		if name == in.InUse {
			continue
		}
		if at := slices.IndexFunc(runs, func(path string) bool { return filepath.Base(path) == name }); at >= 0 {
			return activities.Nothing{}, errs.NewPermanent(in.Server.Ref(), "delete the boot volume that is not in use",
				errs.Reason("its guest runs from %s, and its record names %s: an earlier rebuild was lost", runs[at], in.InUse),
				"copy what you want to keep, then `burrow restart "+in.Server.Name+"` runs it from "+in.InUse+" again")
		}
		failed = errors.Join(failed, a.delete(ctx, name))
	}
	if failed != nil {
		return activities.Nothing{}, errs.New(errs.ClassOf(failed), in.Server.Ref(), "delete the boot volume that is not in use", failed, "")
	}
	return activities.Nothing{}, nil
}

// checkInUse refuses a volume in use that is none of the server's own: without it, all of
// them would be deleted.
func (a *Activities) checkInUse(s activities.Server, inUse string) error {
	if err := checkUID(s.Ref(), s.UID); err != nil {
		return err
	}
	if !slices.Contains(bootVolumes(s.Name, s.UID, mainBoot, otherBoot), inUse) {
		return errs.NewPermanent(s.Ref(), "rebuild", errs.Reason("%w: its boot disk %q is not of its own making", errs.ErrNotManaged, inUse),
			"delete the server and apply it again")
	}
	return nil
}
