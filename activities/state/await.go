package state

import (
	"context"
	"errors"

	"go.temporal.io/sdk/temporal"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/temporalclient"
)

// AwaitClosed returns when a workflow has no open run: it never had one, or the last has
// ended, however it did. It waits by Temporal's long poll; the worker heartbeats for it.
func (a *Activities) AwaitClosed(ctx context.Context, in AwaitClosedIn) (activities.Nothing, error) {
	for {
		run, err := temporalclient.OpenRun(ctx, a.workflows, in.WorkflowID)
		if err != nil {
			return activities.Nothing{}, waitError(ctx, in.WorkflowID, err)
		}
		if run == "" {
			return activities.Nothing{}, nil
		}
		err = a.workflows.GetWorkflow(ctx, in.WorkflowID, run).Get(ctx, nil)
		var ended *temporal.WorkflowExecutionError
		if err != nil && !errors.As(err, &ended) {
			return activities.Nothing{}, waitError(ctx, in.WorkflowID, err)
		}
	}
}

func waitError(ctx context.Context, workflowID string, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return errs.NewTransient(workflowID, "wait until it has ended", err)
}
