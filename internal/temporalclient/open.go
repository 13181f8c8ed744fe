package temporalclient

import (
	"context"
	"errors"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
)

// Describer is the part of Temporal's client that tells of a workflow.
type Describer interface {
	DescribeWorkflowExecution(ctx context.Context, workflowID, runID string) (*workflowservice.DescribeWorkflowExecutionResponse, error)
}

// OpenRun gives the run ID of a workflow's open run, "" when it has none: it never had one,
// or the last has ended. That Temporal does not answer is an error, and says neither.
func OpenRun(ctx context.Context, c Describer, workflowID string) (string, error) {
	desc, err := c.DescribeWorkflowExecution(ctx, workflowID, "")
	var unknown *serviceerror.NotFound
	if errors.As(err, &unknown) {
		return "", nil
	}
	if err != nil || !IsOpen(desc.GetWorkflowExecutionInfo().GetStatus()) {
		return "", err
	}
	return desc.GetWorkflowExecutionInfo().GetExecution().GetRunId(), nil
}

// IsOpen reports whether a run in a status has not ended. A paused one is open: it keeps
// others out.
func IsOpen(status enumspb.WorkflowExecutionStatus) bool {
	return status == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING || status == enumspb.WORKFLOW_EXECUTION_STATUS_PAUSED
}
