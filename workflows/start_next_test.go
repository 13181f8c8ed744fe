package workflows

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/workflow"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/activities/state"
)

func TestTheNextOperationStartsWhenTheOpenOneHasEnded(t *testing.T) {
	w := newWorld(t)
	nothing[state.AwaitClosedIn](w, activities.StateAwaitClosed)
	var deleted DeleteIn
	w.env.RegisterWorkflowWithOptions(func(_ workflow.Context, in DeleteIn) error {
		require.Equal(t, []string{activities.StateAwaitClosed}, w.calls())
		deleted = in
		return nil
	}, workflow.RegisterOptions{Name: NameDeleteServer})
	w.env.ExecuteWorkflow(StartNext, StartNextIn{Ref: "server/db", Next: Operation{DeleteServer: &DeleteIn{Name: "db"}}})
	require.NoError(t, w.env.GetWorkflowError())
	require.Equal(t, "db", deleted.Name)
}

func TestANextOperationThatNobodyKnowsIsRefused(t *testing.T) {
	w := newWorld(t)
	w.env.ExecuteWorkflow(StartNext, StartNextIn{Ref: "server/db"})
	require.ErrorContains(t, w.env.GetWorkflowError(), "server/db: start the next operation: none is named")
	require.Empty(t, w.calls())
}
