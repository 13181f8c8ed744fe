package workflows

import (
	"encoding/json"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/activities/state"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
)

// beginRecord writes the record that says what this operation is about to do. It cannot
// be cancelled half-way: whoever undoes must know the uid. A record that is not there is
// no error; its UID is empty (deletes).
func (op *operation) beginRecord(ctx workflow.Context, in state.BeginIn, spec any) (manifest.Record, error) {
	if spec != nil {
		b, err := json.Marshal(spec)
		if err != nil {
			return manifest.Record{}, errs.NewPermanent(op.Resource, "encode its spec", err, "report this with the manifest")
		}
		in.Spec = b
	}
	out, err := op.beginWith(ctx, in)
	return out.Record, err
}

// beginWith is beginRecord with all that the record's owner answers.
func (op *operation) beginWith(ctx workflow.Context, in state.BeginIn) (state.BeginOut, error) {
	in.Operation = currentOperation(ctx, op.Progress.Operation)
	if err := ctx.Err(); err != nil {
		return state.BeginOut{}, err
	}
	free, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	out, err := call[state.BeginOut](free, op, onControl(quickTimeout), activities.StateBegin, in)
	op.lose(out.Lost...)
	return out, err
}

// finishRecord writes the settled status of a record. A deadline that passes meanwhile comes
// too late: whether the record says Running by then, nobody knows.
func (op *operation) finishRecord(ctx workflow.Context, kind manifest.Kind, rec manifest.Record) error {
	write := func(ctx workflow.Context) error {
		_, err := call[activities.Nothing](ctx, op, onControl(quickTimeout), activities.StateFinish, state.FinishIn{
			Kind: kind, Name: rec.Metadata.Name, UID: rec.Metadata.UID, Status: rec.Status,
		})
		return err
	}
	err := write(ctx)
	if op.cause != nil && (stopped(err) || err != nil && classOf(err) == errs.Transient) &&
		workflow.GetVersion(ctx, changeFinish, workflow.DefaultVersion, 1) == 1 {
		free, cancel := workflow.NewDisconnectedContext(ctx)
		defer cancel()
		return write(free)
	}
	return err
}

// changeFinish: before it a build whose deadline passed while its end was written was undone,
// and its record could say Running.
const changeFinish = "finish"

// removeRecord ends a delete.
func (op *operation) removeRecord(ctx workflow.Context, kind manifest.Kind, rec manifest.Record) error {
	_, err := call[activities.Nothing](ctx, op, onControl(quickTimeout), activities.StateRemove,
		state.RemoveIn{Kind: kind, Name: rec.Metadata.Name, UID: rec.Metadata.UID})
	return err
}

// failRecord settles the record of a delete that could not go on: Failed with the reason,
// and with what is known, so that the next delete takes the rest. It returns the cause.
func (op *operation) failRecord(ctx workflow.Context, kind manifest.Kind, rec manifest.Record, cause error) error {
	free, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	free = workflow.WithValue(free, stepKey{}, stepRecord)
	op.phase(free, manifest.PhaseFailed)
	_, err := call[activities.Nothing](free, op, onControl(quickTimeout), activities.StateFail, state.FailIn{
		Kind: kind, Name: rec.Metadata.Name, UID: rec.Metadata.UID, Message: reason(cause), Left: rec.Status,
	})
	if err != nil {
		return errs.NewPermanent(op.Resource, "settle its record",
			errs.Reason("%s (after: %s)", reason(err), reason(cause)), "run `burrow delete "+op.Resource+"` again")
	}
	return cause
}

// currentOperation names this run in a record.
func currentOperation(ctx workflow.Context, name string) manifest.Operation {
	info := workflow.GetInfo(ctx)
	return manifest.Operation{
		WorkflowID: info.WorkflowExecution.ID, RunID: info.WorkflowExecution.RunID,
		Type: name, Since: info.WorkflowStartTime,
	}
}

// describe sets what users search operations by.
func describe(ctx workflow.Context, op *operation, server, requestedBy string, more ...temporal.SearchAttributeUpdate) {
	updates := append([]temporal.SearchAttributeUpdate{
		searchPhase.ValueSet(string(op.Phase)), searchAttention.ValueSet(false),
	}, more...)
	if server != "" {
		updates = append(updates, searchServer.ValueSet(server))
	}
	if requestedBy != "" {
		updates = append(updates, searchRequester.ValueSet(requestedBy))
	}
	op.show(ctx, updates...)
}

// endRecord settles the record of a build that did not succeed, when this operation had
// written one: removed when it was cancelled, Failed with the reason otherwise. It
// returns the workflow's end.
func (op *operation) endRecord(ctx workflow.Context, kind manifest.Kind, name, uid string, cause error) error {
	if uid == "" {
		return fail(cause)
	}
	free, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	free = workflow.WithValue(free, stepKey{}, stepUndo)
	var err error
	if stopped(cause) {
		_, err = call[activities.Nothing](free, op, onControl(quickTimeout), activities.StateRemove,
			state.RemoveIn{Kind: kind, Name: name, UID: uid})
	} else {
		op.phase(free, manifest.PhaseFailed)
		in := state.FailIn{Kind: kind, Name: name, UID: uid, Message: reason(cause)}
		if op.left && op.known != nil {
			in.Left = op.known(free)
		}
		_, err = call[activities.Nothing](free, op, onControl(quickTimeout), activities.StateFail, in)
	}
	if err != nil {
		return fail(errs.NewPermanent(op.Resource, "settle its record",
			errs.Reason("%s (after: %s)", reason(err), reason(cause)), "run `burrow delete "+op.Resource+"`"))
	}
	return fail(cause)
}
