package workflows

import (
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/activities/state"
	"burrow.dev/burrow/manifest"
)

// StartNext starts an operation on a busy resource once its open one has ended; with
// Cancel it asks that one to end. Somebody else's operation that gets in between is
// waited for (or cancelled) too.
func StartNext(ctx workflow.Context, in StartNextIn) error {
	const stepWait = "wait for the open operation"
	var op *operation
	start := func(ctx workflow.Context) error {
		for {
			err := op.freed(workflow.WithValue(ctx, stepKey{}, stepWait), in)
			if err != nil {
				return err
			}
			err = startOperation(ctx, in).Get(ctx, nil)
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
func startOperation(ctx workflow.Context, in StartNextIn) workflow.ChildWorkflowFuture {
	ctx = workflow.WithChildOptions(ctx, childOptions(in.Ref, enumspb.PARENT_CLOSE_POLICY_ABANDON))
	next := in.Next
	switch {
	case next.DeleteServer != nil:
		return workflow.ExecuteChildWorkflow(ctx, NameDeleteServer, *next.DeleteServer)
	case next.DeleteNetwork != nil:
		return workflow.ExecuteChildWorkflow(ctx, NameDeleteNetwork, *next.DeleteNetwork)
	case next.DeleteVolume != nil:
		return workflow.ExecuteChildWorkflow(ctx, NameDeleteVolume, *next.DeleteVolume)
	case next.DeleteImage != nil:
		return workflow.ExecuteChildWorkflow(ctx, NameDeleteImage, *next.DeleteImage)
	case next.PowerServer != nil:
		return workflow.ExecuteChildWorkflow(ctx, NamePowerServer, *next.PowerServer)
	}
	panic("StartNext without an operation") // the CLI always sets one
}
