package workflows

import (
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"burrow.dev/burrow/internal/errs"
)

// How often the schedules start: a leftover is removed at its second sighting, so within
// half an hour; the report is for people, who look now and then.
const (
	SweepEvery = 15 * time.Minute
	DriftEvery = time.Hour
)

// Scheduled is what a schedule starts, since a schedule gives each of its workflows an ID
// of its own: it starts the one that anybody may start too. One that is under way already
// is as good.
func Scheduled(ctx workflow.Context, in ScheduledIn) error {
	id := IDSweep
	if in.Workflow == NameDrift {
		id = IDDrift
	}
	if in.Workflow != NameSweep && in.Workflow != NameDrift {
		return fail(errs.NewPermanent("schedule", "start "+in.Workflow, errs.ErrNotFound, "restart the control worker with this version"))
	}
	err := workflow.ExecuteChildWorkflow(workflow.WithChildOptions(ctx, childOptions(id, enumspb.PARENT_CLOSE_POLICY_ABANDON)), in.Workflow, in.Input).Get(ctx, nil)
	if temporal.IsWorkflowExecutionAlreadyStartedError(err) {
		return nil
	}
	return err
}
