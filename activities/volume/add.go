package volume

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/internal/errs"
)

// Add makes further data disks for a server that stands, and looks up those that are
// attached. Each gets the first free target; disks that stand keep theirs.
func (a *Activities) Add(ctx context.Context, in AddIn) (AddOut, error) {
	if err := checkUID(in.Server.Ref(), in.Server.UID); err != nil {
		return AddOut{}, err
	}
	taken := slices.Clone(in.Taken)
	var out AddOut
	for _, s := range in.Storage {
		w, err := a.data(BuildIn{Server: in.Server, Attached: in.Attached}, s)
		if err != nil {
			return AddOut{}, err
		}
		if w.disk.Target, err = freeTarget(in.Server, taken); err != nil {
			return AddOut{}, err
		}
		taken = append(taken, w.disk.Target)
		disk, err := a.ensure(ctx, in.Server.Ref(), w)
		if err != nil {
			return AddOut{}, err
		}
		out.Disks = append(out.Disks, disk)
	}
	return out, nil
}

func freeTarget(server activities.Server, taken []string) (string, error) {
	for i := range maxTargets {
		if target := fmt.Sprintf("vd%c", 'a'+i); !slices.Contains(taken, target) {
			return target, nil
		}
	}
	return "", errs.NewPermanent(server.Ref(), "attach disks", errs.Reason("%w: at most %d disks", errs.ErrInvalid, maxTargets), "use fewer, larger disks")
}

// Drop deletes data disks of the server's own by their names: those that Add made in vain.
// None is success.
func (a *Activities) Drop(ctx context.Context, in DropIn) (activities.Nothing, error) {
	if err := checkUID(in.Server.Ref(), in.Server.UID); err != nil {
		return activities.Nothing{}, err
	}
	var failed error
	for _, name := range in.Names {
		for _, format := range formats {
			failed = errors.Join(failed, a.delete(ctx, dataVolume(in.Server.Name, in.Server.UID, name, format)))
		}
	}
	if failed != nil {
		return activities.Nothing{}, errs.New(errs.ClassOf(failed), in.Server.Ref(), "delete volumes", failed, "")
	}
	return activities.Nothing{}, nil
}
