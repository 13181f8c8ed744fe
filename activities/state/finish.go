package state

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/activity"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
)

// Finish writes the settled status whole. After it nothing of the operation is left in the
// record; again is success.
func (a *Activities) Finish(ctx context.Context, in FinishIn) (activities.Nothing, error) {
	if !in.Status.Phase.Settled() {
		return activities.Nothing{}, errs.NewPermanent(manifest.Ref(in.Kind, in.Name), "finish operation",
			fmt.Errorf("%w: phase %q is not settled", errs.ErrInvalid, in.Status.Phase), "")
	}
	return a.settle(ctx, target{in.Kind, in.Name, in.UID, "finish operation"}, in.Status, func(rec *manifest.Record) {
		if len(in.Spec) > 0 && (!bytes.Equal(rec.Spec, in.Spec) || len(manifest.MetadataDifferences(rec.Metadata.Metadata, in.Metadata)) > 0) {
			rec.Spec = in.Spec
			rec.Metadata.Comment, rec.Metadata.Labels, rec.Metadata.NodeName = in.Metadata.Comment, in.Metadata.Labels, in.Metadata.NodeName
			rec.Metadata.Generation++
		}
	})
}

// Fail ends a build as Failed with its reason, and what an unfinished undo left; again is
// success. Where nothing is left, that is remembered: what turns up later is an orphan.
func (a *Activities) Fail(ctx context.Context, in FailIn) (activities.Nothing, error) {
	status := in.Left
	status.Phase, status.Message = manifest.PhaseFailed, in.Message
	if in.Left.Host == "" {
		if err := a.store.NoteDeleted(ctx, in.Kind, in.Name, in.UID); err != nil {
			return activities.Nothing{}, err
		}
	}
	return a.settle(ctx, target{in.Kind, in.Name, in.UID, "record failure"}, status, func(*manifest.Record) {})
}

func (a *Activities) settle(ctx context.Context, t target, status manifest.Status, declare func(*manifest.Record)) (activities.Nothing, error) {
	status.Operation = nil
	return a.write(ctx, t, func(rec *manifest.Record) error {
		declare(rec)
		status.ObservedGeneration = rec.Metadata.Generation
		rec.Status = status
		return nil
	})
}

// Hold sets or clears the hold of a server that waits for a person.
func (a *Activities) Hold(ctx context.Context, in HoldIn) (activities.Nothing, error) {
	return a.write(ctx, target{in.Kind, in.Name, in.UID, "hold"}, func(rec *manifest.Record) error {
		status := in.Status
		if status.Operation == nil {
			status.Operation = rec.Status.Operation
		}
		if op := rec.Status.Operation; op != nil {
			status.Operation.Was = op.Was
		}
		status.ObservedGeneration = rec.Status.ObservedGeneration
		status.Message = in.Message
		status.Conditions = withoutAttention(status.Conditions)
		if in.Message == "" {
			status.Phase = cmp.Or(in.Going, manifest.PhaseProvisioning)
		} else {
			status.Phase = manifest.PhaseHeld
			status.Conditions = append(status.Conditions, manifest.Condition{
				Type: manifest.ConditionAttention, Status: true, Reason: "Held", Message: in.Message, Since: heldSince(rec),
			})
		}
		rec.Status = status
		return nil
	})
}

func withoutAttention(conditions []manifest.Condition) []manifest.Condition {
	var out []manifest.Condition
	for _, c := range conditions {
		if c.Type != manifest.ConditionAttention {
			out = append(out, c)
		}
	}
	return out
}

// heldSince keeps the time of a hold that is written again.
func heldSince(rec *manifest.Record) time.Time {
	for _, c := range rec.Status.Conditions {
		if c.Type == manifest.ConditionAttention && c.Status {
			return c.Since
		}
	}
	return time.Now().UTC()
}

// Note writes what is known so far; phase, operation, message and conditions stay.
func (a *Activities) Note(ctx context.Context, in NoteIn) (activities.Nothing, error) {
	return a.write(ctx, target{in.Kind, in.Name, in.UID, "note progress"}, func(rec *manifest.Record) error {
		status, old := in.Status, rec.Status
		status.Phase, status.Operation, status.Message = old.Phase, old.Operation, old.Message
		status.Conditions, status.ObservedGeneration = old.Conditions, old.ObservedGeneration
		if status.Bundle == "" {
			status.Bundle = old.Bundle
		}
		rec.Status = status
		return nil
	})
}

// Remove deletes a record at the end of a delete. Absent, or made again under another
// uid, is success.
func (a *Activities) Remove(ctx context.Context, in RemoveIn) (activities.Nothing, error) {
	err := a.store.Delete(ctx, in.Kind, in.Name, in.UID)
	if errs.ClassOf(err) == errs.Permanent && errors.Is(err, errs.ErrConflict) {
		err = nil
	}
	return activities.Nothing{}, err
}

// target is a record as an activity knows it.
type target struct {
	kind   manifest.Kind
	name   string
	uid    string
	action string
}

// write changes a record as long as it carries the uid and the caller's run works on it. A
// settled record stays as it is: the caller is a retry whose first answer was lost, or an
// attempt that was given up and only now goes on.
func (a *Activities) write(ctx context.Context, t target, change func(*manifest.Record) error) (activities.Nothing, error) {
	run := activity.GetInfo(ctx).WorkflowExecution.RunID
	object := manifest.Ref(t.kind, t.name)
	_, err := a.store.Update(ctx, t.kind, t.name, func(rec *manifest.Record) error {
		if rec.Metadata.UID != t.uid {
			return errs.NewPermanent(object, t.action, fmt.Errorf("%w: it was made again", errs.ErrConflict), "")
		}
		op := rec.Status.Operation
		if op == nil {
			return errSame
		}
		if op.RunID != run {
			return errs.NewPermanent(object, t.action, fmt.Errorf("%w: %s works on it", errs.ErrBusy, op.Type), "follow it: burrow watch "+object)
		}
		return change(rec)
	})
	if errors.Is(err, errSame) {
		err = nil
	}
	return activities.Nothing{}, err
}
