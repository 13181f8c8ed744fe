package state

import (
	"context"
	"errors"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/temporal"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/internal/errs"
)

// AwaitClosed returns when a workflow has no open run: it never had one, or the last has
// ended, however it did. It waits by Temporal's long poll; the worker heartbeats for it.
func (a *Activities) AwaitClosed(ctx context.Context, in AwaitClosedIn) (activities.Nothing, error) {
	for {
		run, err := a.openRun(ctx, in.WorkflowID)
		if err != nil || run == "" {
			return activities.Nothing{}, err
		}
		err = a.workflows.GetWorkflow(ctx, in.WorkflowID, run).Get(ctx, nil)
		var ended *temporal.WorkflowExecutionError
		if err != nil && !errors.As(err, &ended) {
			return activities.Nothing{}, waitError(ctx, in.WorkflowID, err)
		}
	}
}

// openRun gives the run that is open; "" is none.
func (a *Activities) openRun(ctx context.Context, workflowID string) (string, error) {
	desc, err := a.workflows.DescribeWorkflowExecution(ctx, workflowID, "")
	var unknown *serviceerror.NotFound
	if errors.As(err, &unknown) {
		return "", nil
	}
	if err != nil {
		return "", waitError(ctx, workflowID, err)
	}
	info := desc.GetWorkflowExecutionInfo()
	switch info.GetStatus() {
	case enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, enumspb.WORKFLOW_EXECUTION_STATUS_PAUSED:
		return info.GetExecution().GetRunId(), nil
	}
	return "", nil
}

func waitError(ctx context.Context, workflowID string, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return errs.NewTransient(workflowID, "wait until it has ended", err)
}
