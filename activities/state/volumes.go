package state

import (
	"context"
	"errors"
	"fmt"

	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
)

// AttachVolumes gives existing volumes to a server, all or none. Those it has already
// stay its own.
func (a *Activities) AttachVolumes(ctx context.Context, in VolumesIn) (VolumesOut, error) {
	recs, err := a.store.UpdateAll(ctx, manifest.KindVolume, in.Names, func(recs []*manifest.Record) error {
		for _, rec := range recs {
			if err := attach(rec, in); err != nil {
				return err
			}
		}
		return nil
	})
	if errors.Is(err, errs.ErrNotFound) {
		err = errs.NewPermanent(in.Server.Ref(), "attach volumes", err, "apply the Volume, or give the disk a spec in storage")
	}
	return VolumesOut{Records: recs}, err
}

func attach(rec *manifest.Record, in VolumesIn) error {
	object := manifest.Ref(manifest.KindVolume, rec.Metadata.Name)
	action := "attach to " + in.Server.Ref()
	v := rec.Status.Volume
	switch {
	case v != nil && v.AttachedUID == in.Server.UID:
		return nil
	case v != nil && v.AttachedTo != "":
		return errs.NewPermanent(object, action, fmt.Errorf("%w: attached to %s", errs.ErrBusy, v.AttachedTo),
			"a volume is attached to one server at a time: delete "+v.AttachedTo+" first")
	case v == nil || rec.Status.Phase != manifest.PhaseReady:
		return errs.NewPermanent(object, action, fmt.Errorf("%w: it is %s", errs.ErrBusy, rec.Status.Phase), "see burrow describe "+object)
	}
	// A copy: the change may be applied again to what was read anew.
	attached := *v
	attached.AttachedTo, attached.AttachedUID = in.Server.Ref(), in.Server.UID
	rec.Status.Volume = &attached
	return nil
}

// DetachVolumes takes volumes from a server, where they are attached to its uid. Others,
// and those that are gone, are left alone. With in.All it takes every one. A server without
// a uid, which is one that is not there, has none.
func (a *Activities) DetachVolumes(ctx context.Context, in VolumesIn) (VolumesOut, error) {
	if in.Server.UID == "" {
		return VolumesOut{}, nil
	}
	var recs []manifest.Record
	var err error
	if in.All {
		recs, err = a.store.List(ctx, manifest.KindVolume)
	} else {
		recs, err = a.store.GetMany(ctx, manifest.KindVolume, in.Names...)
	}
	if err != nil {
		return VolumesOut{}, err
	}
	var names []string
	for _, rec := range recs {
		if v := rec.Status.Volume; v != nil && v.AttachedUID == in.Server.UID {
			names = append(names, rec.Metadata.Name)
		}
	}
	recs, err = a.store.UpdateAll(ctx, manifest.KindVolume, names, func(recs []*manifest.Record) error {
		for _, rec := range recs {
			if v := rec.Status.Volume; v != nil && v.AttachedUID == in.Server.UID {
				free := *v
				free.AttachedTo, free.AttachedUID = "", ""
				rec.Status.Volume = &free
			}
		}
		return nil
	})
	if errors.Is(err, errs.ErrNotFound) { // deleted since: the next attempt leaves it out
		err = errs.NewTransient(in.Server.Ref(), "detach volumes", errs.ErrConflict)
	}
	return VolumesOut{Records: recs}, err
}
