package installation_test

import (
	"context"

	"go.temporal.io/sdk/client"
)

// startIdle starts a workflow that no worker takes and gives its run id.
func startIdle(ctx context.Context, c client.Client, id string) (string, error) {
	run, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: id, TaskQueue: "nobody"}, "Idle")
	if err != nil {
		return "", err
	}
	return run.GetRunID(), nil
}
