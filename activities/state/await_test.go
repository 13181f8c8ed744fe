package state_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"burrow.dev/burrow/activities/state"
	"burrow.dev/burrow/internal/devstacktest"
)

func TestAwaitClosedWaitsForTheOpenRunHoweverItEnds(t *testing.T) {
	stack := devstacktest.Stack(t)
	w := worker.New(stack.Client, "q", worker.Options{})
	w.RegisterWorkflowWithOptions(func(ctx workflow.Context) error {
		return workflow.Await(ctx, func() bool { return false })
	}, workflow.RegisterOptions{Name: "Open"})
	require.NoError(t, w.Start())
	defer w.Stop()
	a := state.New(nil, stack.Client)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()

	_, err := a.AwaitClosed(ctx, state.AwaitClosedIn{WorkflowID: "server/never"})
	require.NoError(t, err)

	run, err := stack.Client.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: "server/db", TaskQueue: "q"}, "Open")
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() {
		_, err := a.AwaitClosed(ctx, state.AwaitClosedIn{WorkflowID: "server/db"})
		done <- err
	}()
	short, stop := context.WithTimeout(ctx, 300*time.Millisecond)
	defer stop()
	select {
	case err := <-done:
		t.Fatalf("returned while the run is open: %v", err)
	case <-short.Done():
	}
	require.NoError(t, stack.Client.CancelWorkflow(ctx, run.GetID(), run.GetRunID()))
	require.NoError(t, <-done)
	_, err = a.AwaitClosed(ctx, state.AwaitClosedIn{WorkflowID: "server/db"})
	require.NoError(t, err)
}
