package workflows

import (
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/activities/state"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
)

// StartNext starts an operation on a busy resource once its open one has ended; with
// Cancel it asks that one to end. Somebody else's operation that gets in between is
// waited for (or cancelled) too.
func StartNext(ctx workflow.Context, in StartNextIn) error {
	const stepWait = "wait for the open operation"
	var op *operation
	start := func(ctx workflow.Context) error {
		name, next := in.Next.workflow()
		if next == nil {
			return errs.NewPermanent(in.Ref, "start the next operation", errs.Reason("none is named"), "use the same version of burrow as the workers")
		}
		for {
			err := op.freed(workflow.WithValue(ctx, stepKey{}, stepWait), in)
			if err != nil {
				return err
			}
			err = startOperation(ctx, in.Ref, name, next).Get(ctx, nil)
			if !temporal.IsWorkflowExecutionAlreadyStartedError(err) {
				return err
			}
		}
	}
	body := sequence{step{"start the next operation", start}}
	op, err := begin(ctx, NameStartNext, in.Ref, manifest.PhaseProvisioning, body)
	if err != nil {
		return err
	}
	if err := op.run(ctx, body); err != nil {
		return fail(err)
	}
	return nil
}

// freed asks the resource's open operation to end when it should, and waits until it has.
func (op *operation) freed(ctx workflow.Context, in StartNextIn) error {
	if in.Cancel {
		// An operation that has just ended cannot be cancelled, which is as good.
		_ = workflow.RequestCancelExternalWorkflow(ctx, in.Ref, "").Get(ctx, nil)
	}
	at := onControl(readyTimeout + defaultPlaybookTimeout)
	_, err := call[activities.Nothing](ctx, op, at, activities.StateAwaitClosed, state.AwaitClosedIn{WorkflowID: in.Ref})
	return err
}

// startOperation starts the operation as a child that outlives this workflow.
func startOperation(ctx workflow.Context, ref, name string, in any) workflow.ChildWorkflowFuture {
	ctx = workflow.WithChildOptions(ctx, childOptions(ref, enumspb.PARENT_CLOSE_POLICY_ABANDON))
	return workflow.ExecuteChildWorkflow(ctx, name, in)
}

// workflow is the one operation that is set, with its input; nil when none is.
func (o Operation) workflow() (name string, in any) {
	switch {
	case o.DeleteServer != nil:
		return NameDeleteServer, *o.DeleteServer
	case o.DeleteNetwork != nil:
		return NameDeleteNetwork, *o.DeleteNetwork
	case o.DeleteVolume != nil:
		return NameDeleteVolume, *o.DeleteVolume
	case o.DeleteImage != nil:
		return NameDeleteImage, *o.DeleteImage
	case o.PowerServer != nil:
		return NamePowerServer, *o.PowerServer
	}
	return "", nil
}
