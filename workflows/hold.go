package workflows

import (
	"fmt"

	"go.temporal.io/sdk/workflow"
)

// decision is what a person said about a held operation.
type decision struct {
	verb string // UpdateRetry, UpdateSkip, UpdateAbort
}

// hold keeps everything, says so, and waits until a person decides or the operation is
// cancelled.
func (op *operation) hold(ctx workflow.Context, name string, cause error) (again bool, err error) {
	// One hold at a time: a second step that fails beside the first waits for its turn.
	if err := workflow.Await(ctx, func() bool { return op.heldStep == "" }); err != nil {
		return false, err
	}
	op.heldStep, op.decision = name, nil
	defer func() { op.heldStep = "" }()
	if op.recordHold != nil {
		if err := op.recordHold(ctx, reason(cause)); err != nil {
			return false, err
		}
	}
	op.progress.hold(ctx, name, reason(cause))
	if err := workflow.Await(ctx, func() bool { return op.decision != nil }); err != nil {
		op.progress.hold(ctx, name, "")
		return false, err
	}
	chosen := *op.decision
	if op.recordHold != nil {
		if err := op.recordHold(ctx, ""); err != nil {
			if workflow.GetVersion(ctx, changeHoldEnds, workflow.DefaultVersion, 1) == 1 {
				op.progress.hold(ctx, name, "")
			}
			return false, err
		}
	}
	op.progress.hold(ctx, name, "")
	switch chosen.verb {
	case UpdateRetry:
		return true, nil
	case UpdateSkip:
		op.skip(ctx, name, "skipped by request")
		return false, nil
	default:
		return false, cause
	}
}

// changeHoldEnds: before it an operation that was cancelled while the end of its hold was
// being written seemed to wait for a person for ever.
const changeHoldEnds = "hold-ends"

// listen accepts the decisions. onRetry takes what a retry brings with it.
func (op *operation) listen(ctx workflow.Context, skippable string, onRetry func(RetryIn)) error {
	held := func() error {
		if op.heldStep == "" || op.decision != nil {
			return fmt.Errorf("%s is not held: nothing waits for a decision; follow it with `burrow watch %s`", op.Resource, op.Resource)
		}
		return nil
	}
	err := workflow.SetUpdateHandlerWithOptions(ctx, UpdateRetry,
		func(ctx workflow.Context, in RetryIn) error {
			onRetry(in)
			op.decision = &decision{verb: UpdateRetry}
			return nil
		}, workflow.UpdateHandlerOptions{Validator: func(RetryIn) error { return held() }})
	if err != nil {
		return err
	}
	err = workflow.SetUpdateHandlerWithOptions(ctx, UpdateSkip,
		func(ctx workflow.Context, in DecisionIn) error {
			op.decision = &decision{verb: UpdateSkip}
			return nil
		}, workflow.UpdateHandlerOptions{Validator: func(DecisionIn) error {
			if err := held(); err != nil {
				return err
			}
			if op.heldStep != skippable {
				return fmt.Errorf("%s is held in step %q, which cannot be skipped; use `burrow retry %s` or `burrow abort %s`",
					op.Resource, op.heldStep, op.Resource, op.Resource)
			}
			return nil
		}})
	if err != nil {
		return err
	}
	return workflow.SetUpdateHandlerWithOptions(ctx, UpdateAbort,
		func(ctx workflow.Context, in DecisionIn) error {
			op.decision, op.aborted = &decision{verb: UpdateAbort}, true
			return nil
		}, workflow.UpdateHandlerOptions{Validator: func(DecisionIn) error { return held() }})
}
