package seed

import (
	"context"
	"path/filepath"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/internal/errs"
)

// Prune deletes every seed of a server but one. Its keys stay. None is success.
func (a *Activities) Prune(_ context.Context, in PruneIn) (activities.Nothing, error) {
	if err := checkUID(in.Server); err != nil {
		return activities.Nothing{}, err
	}
	keep := filepath.Base(in.Keep)
	if !owned(keep, in.Server.UID) {
		return activities.Nothing{}, errs.NewPermanent(in.Server.Ref(), "delete old seeds",
			errs.Reason("%w: %s is no seed of this server", errs.ErrInvalid, in.Keep), "report this with the server's record")
	}
	return activities.Nothing{}, a.removeSeeds(in.Server, keep)
}
