package workflows

import (
	"strings"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/activities/state"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
)

// Steps of StartNext.
const (
	stepWait  = "wait for the open operation"
	stepStart = "start the next operation"
)

// StartNext starts an operation on a busy resource once its open one has ended; with
// Cancel it asks that one to end. Somebody else's operation that gets in between is
// waited for (or cancelled) too. It ends when the next operation has started, so that the
// queue's one place is free for another.
func StartNext(ctx workflow.Context, in StartNextIn) error {
	n := &next{in: in}
	body := sequence{step{stepStart, n.start}}
	if in.TurnOnly {
		body = sequence{step{stepWait, n.freed}}
	}
	op, err := begin(ctx, NameStartNext, in.Ref, manifest.PhaseUpdating, body)
	if err != nil {
		return err
	}
	n.operation = op
	// Before this change it was not searched for, and ended with the operation it started.
	n.leaves = workflow.GetVersion(ctx, "start-next-leaves", workflow.DefaultVersion, 1) == 1
	if n.leaves {
		server, _ := strings.CutPrefix(in.Ref, manifest.Ref(manifest.KindServer, ""))
		describe(ctx, op, server, in.RequestedBy)
	}
	if err := op.run(ctx, body); err != nil {
		return fail(err)
	}
	return nil
}

// next waits for a resource.
type next struct {
	*operation
	in     StartNextIn
	leaves bool // it ends when the next operation has started
}

func (n *next) start(ctx workflow.Context) error {
	name, in := n.in.Next.Workflow()
	if in == nil {
		return errs.NewPermanent(n.in.Ref, stepStart, errs.Reason("none is named"), "use the same version of burrow as the workers")
	}
	for {
		if err := n.freed(workflow.WithValue(ctx, stepKey{}, stepWait)); err != nil {
			return err
		}
		started := startOperation(ctx, n.in.Ref, name, in)
		err := started.GetChildWorkflowExecution().Get(ctx, nil)
		if err == nil && !n.leaves {
			err = started.Get(ctx, nil)
		}
		if !temporal.IsWorkflowExecutionAlreadyStartedError(err) {
			return err
		}
	}
}

// freed asks the resource's open operation to end when it should, and waits until it has.
func (n *next) freed(ctx workflow.Context) error {
	if n.in.Cancel {
		// An operation that has just ended cannot be cancelled, which is as good.
		_ = workflow.RequestCancelExternalWorkflow(ctx, n.in.Ref, "").Get(ctx, nil)
	}
	_, err := call[activities.Nothing](ctx, n.operation, onControl(awaitTimeout), activities.StateAwaitClosed,
		state.AwaitClosedIn{WorkflowID: n.in.Ref})
	return err
}

// startOperation starts the operation as a child that outlives this workflow.
func startOperation(ctx workflow.Context, ref, name string, in any) workflow.ChildWorkflowFuture {
	ctx = workflow.WithChildOptions(ctx, childOptions(ref, enumspb.PARENT_CLOSE_POLICY_ABANDON))
	return workflow.ExecuteChildWorkflow(ctx, name, in)
}

// Workflow is the one operation that is set, with its input; nil when none is.
func (o Operation) Workflow() (name string, in any) {
	switch {
	case o.DeleteServer != nil:
		return NameDeleteServer, *o.DeleteServer
	case o.DeleteNetwork != nil:
		return NameDeleteNetwork, *o.DeleteNetwork
	case o.DeleteVolume != nil:
		return NameDeleteVolume, *o.DeleteVolume
	case o.RunPlaybook != nil:
		return NameRunPlaybook, *o.RunPlaybook
	case o.DeletePlaybook != nil:
		return NameDeletePlaybook, *o.DeletePlaybook
	case o.DeleteImage != nil:
		return NameDeleteImage, *o.DeleteImage
	case o.PowerServer != nil:
		return NamePowerServer, *o.PowerServer
	case o.Configure != nil:
		return NameConfigureServer, *o.Configure
	case o.Rebuild != nil:
		return NameRebuildServer, *o.Rebuild
	case o.CreateImage != nil:
		return NameCreateImage, *o.CreateImage
	}
	return "", nil
}
