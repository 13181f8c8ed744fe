package workflows

import (
	"go.temporal.io/sdk/workflow"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/activities/state"
	"burrow.dev/burrow/manifest"
)

// removal is what the deletes of networks, volumes and images share: the record says
// Deleting, and is as it was again when the delete is refused.
type removal struct {
	*operation
	kind manifest.Kind
	in   DeleteIn
	rec  manifest.Record
	gone bool // what the record stands for is gone, or may be
}

func (r *removal) runAs(ctx workflow.Context, name, resource string, body node) error {
	op, err := begin(ctx, name, resource, manifest.PhaseDeleting, body)
	if err != nil {
		return err
	}
	r.operation = op
	describe(ctx, op, "", r.in.RequestedBy)
	if err := op.runToEnd(ctx, body); err != nil {
		if r.gone {
			err = op.failRecord(ctx, r.kind, r.rec, err)
		}
		return fail(err)
	}
	return nil
}

// missing reports that there is nothing to delete, which is success.
func (r *removal) missing() bool { return r.rec.Metadata.UID == "" }

func (r *removal) record(ctx workflow.Context) (err error) {
	r.add(stepRecord, func(ctx workflow.Context) error {
		if r.missing() || r.gone {
			return nil
		}
		before := r.rec
		before.Status.Operation = nil
		before.Status.Phase = manifest.PhaseReady
		if before.Status.Message != "" {
			before.Status.Phase = manifest.PhaseFailed
		}
		return r.finishRecord(ctx, r.kind, before)
	})
	r.rec, err = r.beginRecord(ctx, state.BeginIn{
		Kind: r.kind, Metadata: manifest.Metadata{Name: r.in.Name}, Phase: manifest.PhaseDeleting, RequestedBy: r.in.RequestedBy,
	}, nil)
	return err
}

// destroy calls what cannot be taken back. A delete that fails after it leaves its record
// Failed, for nobody to use, and the next delete goes on with it.
func (r *removal) destroy(ctx workflow.Context, at target, activity string, in any) error {
	_, err := call[activities.Nothing](ctx, r.operation, at, activity, in)
	r.gone = r.gone || err == nil
	return err
}

func (r *removal) finish(ctx workflow.Context) error {
	if r.missing() {
		return nil
	}
	return r.removeRecord(ctx, r.kind, r.rec)
}
