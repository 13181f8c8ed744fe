package state

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
)

// Begin writes into the record what an operation is about to do. The same run gets the
// same answer again. See BeginOut for what is refused.
func (a *Activities) Begin(ctx context.Context, in BeginIn) (BeginOut, error) {
	switch in.Phase {
	case manifest.PhaseProvisioning:
		return a.beginBuild(ctx, in)
	case manifest.PhaseUpdating:
		lost, err := a.store.LostNames(ctx)
		if err != nil {
			return BeginOut{}, err
		}
		rec, err := a.change(ctx, in, func(in BeginIn, rec *manifest.Record) error { return allowUpdate(in, rec, lost) })
		if errors.Is(err, errs.ErrNotFound) {
			return BeginOut{}, refuse(in, errs.ErrNotFound, "create it first: burrow apply")
		}
		if err != nil || in.Declared == nil {
			return BeginOut{Found: err == nil, Record: rec}, err
		}
		decision, err := manifest.Decide(&rec, *in.Declared)
		return BeginOut{Found: true, Record: rec, Decision: decision}, err
	case manifest.PhaseDeleting:
		rec, err := a.change(ctx, in, allowDelete)
		if errors.Is(err, errs.ErrNotFound) {
			return BeginOut{}, nil
		}
		if err == nil {
			rec, err = a.complete(ctx, rec)
		}
		if err != nil {
			return BeginOut{}, err
		}
		lost, err := a.store.LostNames(ctx)
		return BeginOut{Found: true, Record: rec, Lost: lost}, err
	}
	return BeginOut{}, refuse(in, fmt.Errorf("%w phase %q", errs.ErrInvalid, in.Phase), "")
}

// beginBuild creates the record, or writes it anew over a Failed one, of which nothing is left.
func (a *Activities) beginBuild(ctx context.Context, in BeginIn) (BeginOut, error) {
	fresh := newRecord(in)
	rec, err := a.store.Create(ctx, fresh)
	if !errors.Is(err, errs.ErrExists) {
		return BeginOut{Found: err == nil, Record: rec}, err
	}
	rec, err = a.change(ctx, in, func(in BeginIn, rec *manifest.Record) error {
		switch {
		case rec.Status.Phase == manifest.PhaseFailed && rec.Status.Host != "":
			return refuse(in, fmt.Errorf("%w: an earlier build could not be undone whole", errs.ErrExists),
				"delete what it left: burrow delete "+object(in))
		case rec.Status.Phase == manifest.PhaseFailed:
			fresh.Metadata.Generation = rec.Metadata.Generation + 1
			fresh.Metadata.ResourceVersion = rec.Metadata.ResourceVersion
			*rec = fresh
			return nil
		case rec.Status.Phase.Settled():
			return refuse(in, errs.ErrExists, "delete it first to build it anew: burrow delete "+object(in))
		}
		return refuse(in, fmt.Errorf("%w: an earlier operation ended without finishing", errs.ErrExists),
			"delete what it left: burrow delete "+object(in))
	})
	if errors.Is(err, errs.ErrNotFound) { // deleted since: the next attempt creates it
		return BeginOut{}, errs.NewTransient(object(in), action(in), errs.ErrConflict)
	}
	return BeginOut{Found: err == nil, Record: rec}, err
}

func newRecord(in BeginIn) manifest.Record {
	op := in.Operation
	return manifest.Record{
		APIVersion: manifest.APIVersion,
		Kind:       in.Kind,
		Metadata: manifest.RecordMeta{
			Metadata: in.Metadata, UID: uuid.NewString(), Generation: 1,
			CreatedAt: time.Now().UTC(), CreatedBy: in.RequestedBy,
		},
		Spec:   in.Spec,
		Status: manifest.Status{Phase: manifest.PhaseProvisioning, Operation: &op, Bundle: in.Bundle},
	}
}

// allowUpdate keeps spec and status. An update that ended without finishing (somebody
// terminated it) is taken over: it changed nothing that the next one does not settle. What
// is on a lost host cannot be changed.
func allowUpdate(in BeginIn, rec *manifest.Record, lost []string) error {
	if host := rec.Status.Host; slices.Contains(lost, host) {
		return refuse(in, fmt.Errorf("host %s, which it is on, was declared lost", host),
			"bring the host back; or build it on another host, without its data: `burrow delete "+object(in)+"`, then apply it again")
	}
	if phase := rec.Status.Phase; phase == manifest.PhaseFailed || (!phase.Settled() && phase != manifest.PhaseUpdating) {
		return refuse(in, fmt.Errorf("%w state: it is %s", errs.ErrInvalid, phase), "see burrow describe "+object(in))
	}
	if in.Declared != nil {
		if _, err := manifest.Decide(rec, *in.Declared); err != nil {
			return err
		}
	}
	occupy(in, rec)
	return nil
}

// allowDelete keeps uid, spec and status: they say what there is to delete.
func allowDelete(in BeginIn, rec *manifest.Record) error {
	if v := rec.Status.Volume; v != nil && v.AttachedTo != "" {
		return refuse(in, fmt.Errorf("%w: attached to %s", errs.ErrBusy, v.AttachedTo), "`burrow delete "+v.AttachedTo+"` first; that keeps the volume's data")
	}
	occupy(in, rec)
	return nil
}

// occupy makes the record the operation's. That its host was away is not carried through
// it: what the operation finds is newer.
func occupy(in BeginIn, rec *manifest.Record) {
	op := in.Operation
	rec.Status.Find()
	op.Was = wasBefore(rec.Status)
	rec.Status.Phase, rec.Status.Operation = in.Phase, &op
}

// wasBefore is the phase that a record had when nobody worked on it.
func wasBefore(s manifest.Status) manifest.Phase {
	if !s.Phase.Settled() && s.Operation != nil {
		return s.Operation.Was // that operation is lost
	}
	return s.Phase
}

// errSame ends an update that has nothing to write.
var errSame = errors.New("nothing to change")

// change applies an operation's beginning to a record that exists. What this very run
// wrote is left as it is; what another operation has is refused.
func (a *Activities) change(ctx context.Context, in BeginIn, allow func(BeginIn, *manifest.Record) error) (manifest.Record, error) {
	var same manifest.Record
	rec, err := a.store.Update(ctx, in.Kind, in.Metadata.Name, func(rec *manifest.Record) error {
		op := rec.Status.Operation
		if op != nil && op.RunID == in.Operation.RunID && rec.Status.Phase == in.Phase {
			same = *rec
			return errSame
		}
		if !rec.Status.Phase.Settled() && !superseded(op, in.Operation) {
			return busy(in, rec)
		}
		return allow(in, rec)
	})
	if errors.Is(err, errSame) {
		return same, nil
	}
	return rec, err
}

// superseded reports whether a record's operation has no open workflow any more. Temporal
// opens one run for each ID, so an earlier run of our own ID has ended, however it did.
func superseded(there *manifest.Operation, ours manifest.Operation) bool {
	return there == nil || (there.WorkflowID == ours.WorkflowID && there.RunID != ours.RunID)
}

func busy(in BeginIn, rec *manifest.Record) error {
	op := rec.Status.Operation
	what := fmt.Sprintf("%s, started %s", op.Type, op.Since.UTC().Format(time.RFC3339))
	if op.Step != "" {
		what = fmt.Sprintf("%s, step %q, started %s", op.Type, op.Step, op.Since.UTC().Format(time.RFC3339))
	}
	return refuse(in, fmt.Errorf("%w: %s", errs.ErrBusy, what), "follow it: burrow watch "+object(in))
}

func refuse(in BeginIn, cause error, next string) error {
	return errs.NewPermanent(object(in), action(in), cause, next)
}

func object(in BeginIn) string { return manifest.Ref(in.Kind, in.Metadata.Name) }

func action(in BeginIn) string {
	if in.Operation.Type == "" {
		return "begin operation"
	}
	return "begin " + in.Operation.Type
}
