package ipam

import (
	"context"
	"encoding/json"
	"time"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/etcdstate"
	"burrow.dev/burrow/manifest"
)

// Release gives back all addresses and MACs of a server's NICs. None is success, and so is
// a network that is gone: its addresses went with it. While a lost host owes the removal of
// the server's guest, which may still run there, they are kept, and the host owes their
// release behind it: an address is free only when its guest is gone.
func (a *Activities) Release(ctx context.Context, in ReleaseIn) (activities.Nothing, error) {
	owing, err := a.registry.Owing(ctx)
	if err != nil {
		return activities.Nothing{}, err
	}
	if host := owing[in.Server.UID]; host != "" {
		input, err := json.Marshal(in)
		if err != nil {
			return activities.Nothing{}, errs.NewPermanent(in.Server.Ref(), "release addresses", err, "report this")
		}
		owed, err := a.registry.Owe(ctx, etcdstate.Debt{
			Host: host, Object: in.Server.Ref(), UID: in.Server.UID, What: "release its addresses",
			Activity: activities.IPAMRelease, Input: input, Since: time.Now().UTC(),
		})
		if err != nil || owed {
			return activities.Nothing{}, err
		}
	}
	return a.ReleaseOwed(ctx, in)
}

// ReleaseOwed is Release of what a host that was lost owed, after it has removed the guest.
func (a *Activities) ReleaseOwed(ctx context.Context, in ReleaseIn) (activities.Nothing, error) {
	recs, err := a.registry.GetMany(ctx, manifest.KindNetwork, networkNames(in.NICs)...)
	if err != nil {
		return activities.Nothing{}, err
	}
	for _, rec := range recs {
		var owners []string
		for _, nic := range in.NICs {
			if nic.Network == rec.Metadata.Name {
				owners = append(owners, ownerPrefix(in.Server, nic))
			}
		}
		if err := a.pools.Release(ctx, rec.Metadata.UID, owners...); err != nil {
			return activities.Nothing{}, errs.New(errs.ClassOf(err), in.Server.Ref(), "release addresses on network/"+rec.Metadata.Name, err, "")
		}
	}
	return activities.Nothing{}, a.releaseMACs(ctx, in.Server, in.NICs)
}
