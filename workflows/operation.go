package workflows

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
)

// operation runs the steps of one workflow: it shows them, holds them when a person must
// decide, and undoes them when they cannot go on.
type operation struct {
	*progress
	saga
	hosts

	// onFailure says what an operator error in a step does; nil: roll back.
	onFailure func(step string) manifest.OnFailure
	// recordHold writes a hold (message) or its end ("") into the record; nil: nobody holds.
	recordHold func(ctx workflow.Context, message string) error

	// beforeUndo runs once before the first undo; nil: nothing.
	beforeUndo func(ctx workflow.Context) error
	// known is what the record should keep when an undo could not finish; nil: nothing.
	known func(ctx workflow.Context) manifest.Status
	left  bool // an undo could not finish
	// undoing is why everything is undone, nil when nobody need be told: it was cancelled, or
	// given up by a person.
	undoing error

	undoVersion workflow.Version // of changeUndo; known while it undoes

	cancel   workflow.CancelFunc
	cause    error // why the operation stops, when it was not cancelled from outside
	begun    map[string]workflow.Future
	heldStep string
	decision *decision
	aborted  bool // a person has given it up
}

// begin sets up an operation: its steps are known to the query before the first runs.
func begin(ctx workflow.Context, name, resource string, phase manifest.Phase, body node) (*operation, error) {
	p, err := newProgress(ctx, name, resource, phase, body.names())
	if err != nil {
		return nil, err
	}
	op := &operation{progress: p, begun: map[string]workflow.Future{}}
	op.heed(ctx)
	return op, nil
}

// run runs the body and, when it fails or is cancelled, every undo. It returns the
// first cause; what an undo could not do is joined to it.
func (op *operation) run(ctx workflow.Context, body node) error {
	main, cancel := workflow.WithCancel(ctx)
	defer cancel()
	op.cancel = cancel
	err := body.run(main, op)
	if err == nil {
		return nil // its end is on record; a deadline that passed meanwhile comes too late
	}
	switch {
	case op.cause != nil:
		err = op.cause
	case cutShort(ctx, err):
		err = ctx.Err()
	}
	cancel()
	op.settle(ctx)
	return op.undo(ctx, err)
}

// changeCutShort: before it an operation failed that was cancelled while a worker was lost.
const changeCutShort = "cut-short"

// cutShort reports whether err is that of an attempt which would have been tried again, had
// the operation not been cancelled: Temporal hands out a cancelled activity's last error,
// also one that says nothing about the cancel, such as a missing heartbeat.
func cutShort(ctx workflow.Context, err error) bool {
	return ctx.Err() != nil && !stopped(err) && classOf(err) == errs.Transient &&
		workflow.GetVersion(ctx, changeCutShort, workflow.DefaultVersion, 1) == 1
}

// runToEnd is run for what a cancel must not stop half-way: a delete is an undo itself.
func (op *operation) runToEnd(ctx workflow.Context, body node) error {
	ctx, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	return op.run(takeAway(ctx), body)
}

// stop ends the operation from inside, with its cause.
func (op *operation) stop(cause error) {
	if op.cause == nil {
		op.cause = cause
	}
	op.cancel()
}

// settle waits for steps that were started beside the others, so that no undo overtakes one.
func (op *operation) settle(ctx workflow.Context) {
	ctx, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	for _, name := range workflow.DeterministicKeys(op.begun) {
		_ = op.begun[name].Get(ctx, nil) // its error is the cause already
	}
}

// undo compensates and reports the first error, with what could not be undone.
func (op *operation) undo(ctx workflow.Context, cause error) error {
	if len(op.undos) == 0 {
		return cause
	}
	free, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	op.progress.begin(free, stepUndo)
	op.step(stepUndo).State = StepUndoing
	op.detail(free, stepUndo, "because: %s", reason(cause))
	if !stopped(cause) && !op.aborted {
		op.undoing = cause
	}
	undoing := workflow.WithValue(free, stepKey{}, stepUndo)
	op.undoVersion = workflow.GetVersion(free, changeUndo, workflow.DefaultVersion, undoTells)
	if op.undoVersion >= undoOnce {
		op.once()
		if op.beforeUndo != nil {
			if err := op.beforeUndo(undoing); err != nil {
				op.stuck.add(stepRecord, err)
			}
		}
	}
	failed := op.compensate(undoing)
	op.progress.end(free, stepUndo, failed)
	if failed != nil {
		op.left = true
		return errs.NewPermanent(op.Resource, op.Operation,
			errs.Reason("%s; and what it had made could not all be removed: %s", reason(cause), failed),
			"remove what the message names, then run `burrow delete "+op.Resource+"`")
	}
	return cause
}

// limit ends the operation when its deadline passes.
func (op *operation) limit(ctx workflow.Context, deadline manifest.Duration) {
	d, err := time.ParseDuration(string(deadline))
	if err != nil || d <= 0 {
		return
	}
	workflow.Go(ctx, func(ctx workflow.Context) {
		if workflow.Sleep(ctx, d) == nil {
			op.stop(errs.NewPermanent(op.Resource, op.Operation,
				errs.Reason("its deadline of %s has passed", d), "apply again with a longer spec.deadline"))
		}
	})
}

// changeUndo keeps the undo of runs that were in it under an older version as it was.
const changeUndo = "undo"

const (
	// undoOnce: before it nothing ran ahead of the undo, a held step that was retried was
	// undone twice, and PowerServer left a guest that it could not start.
	undoOnce = 1
	// undoTells: before it a guest that could not be put back stayed paused, and nobody looked
	// how large a disk is whose grow was given up.
	undoTells = 2
)

// stepUndo is the step under which every undo is shown.
const stepUndo = "undo"

// stepKey carries the running step's name to call.
type stepKey struct{}

// currentStep is the name of the step that ctx runs in.
func currentStep(ctx workflow.Context) string {
	name, _ := ctx.Value(stepKey{}).(string)
	return name
}

// call runs one activity of the current step. Its summary is "step: detail", which the
// Web UI and `burrow watch` show.
func call[Out any](ctx workflow.Context, op *operation, at target, activity string, in any) (Out, error) {
	var out Out
	name := currentStep(ctx)
	summary := name
	if detail := op.step(name).Detail; detail != "" {
		summary += ": " + detail
	}
	options := at.options(bounded(summary))
	err := op.reach(ctx, at.host, activity, in, func(ctx workflow.Context) error {
		return workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, options), activity, in).Get(ctx, &out)
	})
	return out, err
}

// summaryMost is Temporal's limit for a summary, with room for its encoding.
const summaryMost = 180

func bounded(s string) string {
	if len(s) <= summaryMost {
		return s
	}
	cut := summaryMost
	for cut > 0 && s[cut]&0xC0 == 0x80 { // not in the middle of a rune
		cut--
	}
	return s[:cut] + "…"
}

// stopped reports whether err is the operation's own cancellation.
func stopped(err error) bool { return temporal.IsCanceledError(err) }
