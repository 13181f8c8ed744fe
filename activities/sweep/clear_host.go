package sweep

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/activities/domain"
	"burrow.dev/burrow/activities/network"
	"burrow.dev/burrow/activities/seed"
	"burrow.dev/burrow/internal/ovsx"
	"burrow.dev/burrow/manifest"
)

// rank is the order in which things of a server go: the guest first.
var rank = []Thing{ThingDomain, ThingPort, ThingVolume, ThingSeed, ThingConsole, ThingReference, ThingNetwork}

// ClearHost removes what was left behind here, the guest before its disks. Everything is
// looked at again: its owner must still be gone, and its mark be there.
func (h *Host) ClearHost(ctx context.Context, in ClearIn) (ClearOut, error) {
	inv, err := h.inventory(ctx)
	if err != nil {
		return ClearOut{}, err
	}
	who, err := readOwners(ctx, h.cfg.Store)
	if err != nil {
		return ClearOut{}, err
	}
	in.Findings = slices.Clone(in.Findings)
	slices.SortStableFunc(in.Findings, func(a, b Finding) int { return slices.Index(rank, a.Thing) - slices.Index(rank, b.Thing) })
	removed := map[string]bool{}
	return clearAll(in, func(f Finding) error {
		if f.Thing != ThingNetwork && who.lives(f.UID) {
			return errLives
		}
		if why := who.keeps(); why != "" {
			return errors.New(why)
		}
		h.cfg.Log.Info("sweep removes", slog.String("object", f.Object), slog.String("uid", f.UID))
		err := h.remove(ctx, f, inv, removed)
		if f.Thing == ThingDomain && err == nil {
			removed[f.Name] = true
		}
		return err
	}), nil
}

func (h *Host) remove(ctx context.Context, f Finding, inv inventory, removed map[string]bool) (err error) {
	server := activities.Server{Name: f.Name, UID: f.UID}
	switch f.Thing {
	case ThingDomain, ThingConsole:
		_, err = h.cfg.Domains.Remove(ctx, domain.RemoveIn{Server: server})
	case ThingPort:
		_, err = h.cfg.Network.Unwire(ctx, network.UnwireIn{Server: server})
	case ThingVolume:
		err = h.removeVolume(ctx, f, inv, removed)
	case ThingSeed:
		_, err = h.cfg.Seeds.Remove(ctx, seed.RemoveIn{Server: server})
	case ThingReference:
		_, err = h.cfg.Network.Release(ctx, network.ReleaseIn{Server: server, Ports: []manifest.Port{{NetworkUID: f.Name, Network: f.Name}}})
	case ThingNetwork:
		if slices.ContainsFunc(inv.ports, func(p ovsx.Port) bool { return p.ExternalIDs[ovsx.KeyNetwork] == f.UID }) {
			return errLives
		}
		_, err = h.cfg.Network.Remove(ctx, network.RemoveIn{Name: f.Name, UID: f.UID})
	default:
		err = fmt.Errorf("%s cannot be removed here", f.Thing)
	}
	return err
}

// removeVolume refuses one that a domain uses, whoever's it is.
func (h *Host) removeVolume(ctx context.Context, f Finding, inv inventory, removed map[string]bool) error {
	for _, v := range inv.volumes {
		if v.Volume != f.Name {
			continue
		}
		path, err := h.cfg.Volumes.Path(ctx, v)
		if err != nil {
			return err
		}
		if user := inv.inUse[path]; user != "" && !removed[user] {
			return fmt.Errorf("domain %s uses it", user)
		}
		return h.cfg.Volumes.DeleteNamed(ctx, v)
	}
	return nil // gone
}
