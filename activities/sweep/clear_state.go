package sweep

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"burrow.dev/burrow/internal/etcdstate"
	"burrow.dev/burrow/internal/sshkeys"
	"burrow.dev/burrow/manifest"
)

// ClearState releases what etcd holds for nobody. The records are read again: their
// owners must still be gone.
func (a *Control) ClearState(ctx context.Context, in ClearIn) (ClearOut, error) {
	who, err := readOwners(ctx, a.store)
	if err != nil {
		return ClearOut{}, err
	}
	macs, err := a.store.Owners(ctx, macFolder)
	if err != nil {
		return ClearOut{}, err
	}
	return clearAll(in, func(f Finding) error {
		if f.Thing != ThingClaim {
			if who.lives(f.UID) {
				return errLives
			}
			if why := who.keeps(); why != "" {
				return errors.New(why)
			}
		}
		switch f.Thing {
		case ThingAddress:
			return a.pools.Release(ctx, f.Name, f.UID+"/")
		case ThingPool:
			return a.pools.Forget(ctx, f.UID)
		case ThingMAC:
			return a.disown(ctx, macs, f.UID)
		case ThingReservation:
			return a.store.Unreserve(ctx, f.UID)
		case ThingKeys:
			return a.secrets.Delete(ctx, sshkeys.SecretName(f.UID))
		case ThingAttachment:
			return a.detach(ctx, f)
		case ThingReference:
			_, err := a.store.DropReference(ctx, f.Name, f.Host, f.UID)
			return err
		case ThingClaim:
			return a.store.DropClaim(ctx, etcdstate.Claimed{Key: f.Name, Revision: f.Revision})
		}
		return fmt.Errorf("%s cannot be released here", f.Thing)
	}), nil
}

func (a *Control) disown(ctx context.Context, macs map[string]string, uid string) error {
	for _, mac := range slices.Sorted(maps.Keys(macs)) {
		if owner := macs[mac]; strings.HasPrefix(owner, uid+"/") {
			if err := a.store.Disown(ctx, macFolder, owner, mac); err != nil {
				return err
			}
		}
	}
	return nil
}

func (a *Control) detach(ctx context.Context, f Finding) error {
	_, err := a.store.Update(ctx, manifest.KindVolume, f.Name, func(rec *manifest.Record) error {
		v := rec.Status.Volume
		if v == nil || v.AttachedUID != f.UID {
			return errLives
		}
		free := *v
		free.AttachedTo, free.AttachedUID = "", ""
		rec.Status.Volume = &free
		return nil
	})
	return err
}
