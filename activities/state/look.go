package state

import (
	"context"

	"burrow.dev/burrow/manifest"
)

// Look reads a record; one that is not there is no error.
func (a *Activities) Look(ctx context.Context, in LookIn) (LookOut, error) {
	recs, err := a.store.GetMany(ctx, in.Kind, in.Name)
	if err != nil || len(recs) == 0 {
		return LookOut{}, err
	}
	out := LookOut{Found: true, Record: recs[0]}
	if in.Declared != nil {
		out.Decision, err = manifest.Decide(&recs[0], *in.Declared)
	}
	return out, err
}
