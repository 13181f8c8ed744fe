package state

import (
	"context"
	"errors"

	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
)

// errNothing ends an adoption that has nothing to take over.
var errNothing = errors.New("nothing to take over")

// Adopt takes over a record whose operation ended without finishing; its phase stays.
// Again is the same answer.
func (a *Activities) Adopt(ctx context.Context, in AdoptIn) (AdoptOut, error) {
	var out AdoptOut
	rec, err := a.store.Update(ctx, in.Kind, in.Name, func(rec *manifest.Record) error {
		if rec.Metadata.UID != in.UID || rec.Status.Phase.Settled() {
			return errNothing
		}
		if op := rec.Status.Operation; op != nil {
			if op.RunID == in.Operation.RunID {
				out = AdoptOut{Record: *rec}
				return errSame
			}
			out.Was = *op
			if op.Type == in.Operation.Type { // one that took it over before, and was lost as well
				out.Was.Type = op.Step
			}
		}
		op := in.Operation
		// What it took over says what was lost, also to the attempt that asks again.
		op.Step, op.Was = out.Was.Type, out.Was.Was
		rec.Status.Operation = &op
		return nil
	})
	switch {
	case errors.Is(err, errNothing), errors.Is(err, errs.ErrNotFound):
		return AdoptOut{}, nil
	case errors.Is(err, errSame):
		rec, out.Was.Type = out.Record, out.Record.Status.Operation.Step
	case err != nil:
		return AdoptOut{}, err
	}
	out.Found = true
	if out.Record, err = a.complete(ctx, rec); err != nil {
		return out, err
	}
	out.Lost, err = a.store.LostNames(ctx)
	return out, err
}

// complete fills in what a build had done before it could note it: the host from its
// reservation, the networks from its references. Both are written before anything is made.
func (a *Activities) complete(ctx context.Context, rec manifest.Record) (manifest.Record, error) {
	if rec.Status.Host == "" {
		host, err := a.store.Placement(ctx, rec.Metadata.UID)
		if err != nil || host == "" {
			return rec, err
		}
		rec.Status.Host = host
	}
	if rec.Kind != manifest.KindServer || len(rec.Status.Ports) > 0 {
		return rec, nil
	}
	refs, err := a.store.AllReferences(ctx)
	if err != nil {
		return rec, err
	}
	for _, r := range refs {
		if r.Owner == rec.Metadata.UID && r.Host == rec.Status.Host {
			rec.Status.Ports = append(rec.Status.Ports, manifest.Port{NetworkUID: r.NetworkUID, Network: r.NetworkUID})
		}
	}
	return rec, nil
}
