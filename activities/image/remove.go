package image

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/imagestore"
	"burrow.dev/burrow/manifest"
)

// shownUsers bounds how many disks an error names.
const shownUsers = 5

// Remove deletes an image's volume from this host's pool. A volume that is not there is
// success, and one that another image's record names as well stays. Errors: Permanent
// when a disk's backing chain needs it; Operator when the file is not what its name says.
func (a *Activities) Remove(ctx context.Context, in RemoveIn) (activities.Nothing, error) {
	return activities.Nothing{}, a.remove(ctx, in)
}

func (a *Activities) remove(ctx context.Context, in RemoveIn) error {
	object := manifest.Ref(manifest.KindImage, in.Name)
	if in.SHA256 == "" { // it never got as far as a volume
		return nil
	}
	shared, err := a.shared(ctx, in)
	if err != nil || shared {
		return err
	}
	dir, err := a.cfg.Libvirt.PoolDir(ctx, a.cfg.Pool)
	if err != nil {
		return err
	}
	_, there, err := a.store.Verified(ctx, object, dir, in.SHA256)
	if err != nil {
		return err
	}
	if there {
		if err := a.unused(object, dir, in.SHA256); err != nil {
			return err
		}
		if err := a.deleteVolume(ctx, imagestore.VolumeName(in.SHA256)); err != nil {
			return err
		}
	}
	return a.store.Forget(dir, in.SHA256)
}

// shared reports whether another image is the same file.
func (a *Activities) shared(ctx context.Context, in RemoveIn) (bool, error) {
	records, err := a.cfg.Records.List(ctx, manifest.KindImage)
	if err != nil {
		return false, err
	}
	for _, r := range records {
		if r.Status.Phase == manifest.PhaseDamaged {
			return false, errs.NewOperator("image/"+in.Name, "delete", errs.Reason("whether %s is the same file cannot be known: %s", manifest.Ref(r.Kind, r.Metadata.Name), r.Status.Message), "mend that record first")
		}
		if r.Metadata.Name != in.Name && r.Status.Image != nil && r.Status.Image.SHA256 == in.SHA256 {
			a.cfg.Log.Info("image volume stays: another image is the same file", "image", in.Name, "other", r.Metadata.Name)
			return true, nil
		}
	}
	return false, nil
}

// unused refuses to delete what disks stand on.
func (a *Activities) unused(object, dir, sum string) error {
	users, err := a.store.Dependents(dir, sum)
	switch {
	case err != nil:
		return errs.NewTransient(object, "look for disks that need it", err)
	case len(users) == 0:
		return nil
	}
	named := strings.Join(users[:min(len(users), shownUsers)], ", ")
	if more := len(users) - shownUsers; more > 0 {
		named += fmt.Sprintf(" and %d more", more)
	}
	return errs.NewPermanent(object, "delete", fmt.Errorf("%w: needed by %s", errs.ErrBusy, named), "delete the servers that these disks belong to first")
}

func (a *Activities) deleteVolume(ctx context.Context, volume string) error {
	if err := a.register(ctx, volume); err != nil {
		return err
	}
	if err := a.cfg.Libvirt.DeleteVolume(ctx, a.cfg.Pool, volume); err != nil && !errors.Is(err, errs.ErrNotFound) {
		return err
	}
	return nil
}
