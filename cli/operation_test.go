package cli

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	ucli "github.com/urfave/cli/v2"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"burrow.dev/burrow/cli/follow"
	"burrow.dev/burrow/workflows"
)

// described is a Temporal that knows one run.
type described struct {
	client.Client
	status enumspb.WorkflowExecutionStatus
	err    error
}

func (d described) DescribeWorkflow(context.Context, string, string) (*client.WorkflowExecutionDescription, error) {
	if d.err != nil {
		return nil, d.err
	}
	found := &client.WorkflowExecutionDescription{}
	found.Status, found.WorkflowExecution.RunID, found.WorkflowType.Name = d.status, "run-1", "ProvisionServer"
	return found, nil
}

func TestARunIsOpenUntilItHasEnded(t *testing.T) {
	for status, want := range map[enumspb.WorkflowExecutionStatus]bool{
		enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING: true, enumspb.WORKFLOW_EXECUTION_STATUS_PAUSED: true,
		enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED: false, enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED: false,
	} {
		run, open, err := openRun(t.Context(), described{status: status}, "server/db")
		require.NoError(t, err)
		require.Equal(t, want, open, status)
		if open {
			require.Equal(t, "run-1", run.RunID)
			require.Equal(t, "ProvisionServer", run.kind)
		}
	}
	_, open, err := openRun(t.Context(), described{err: serviceerror.NewNotFound("no such workflow")}, "server/db")
	require.NoError(t, err)
	require.False(t, open)
}

func TestADetachedCommandSaysHowToFollow(t *testing.T) {
	var out bytes.Buffer
	app := &ucli.App{Writer: &out, Flags: []ucli.Flag{leaveFlag()}, Action: func(c *ucli.Context) error {
		return followed(c, nil, follow.Target{ID: "server/db"}, follow.Target{ID: workflows.NextID("server/web")})
	}}
	require.NoError(t, app.RunContext(t.Context(), []string{"burrow", "--detach"}))
	require.Equal(t, "server/db: follow it with `burrow watch server/db`\nserver/web: follow it with `burrow watch server/web`\n", out.String())
}

func TestATemporalThatDoesNotAnswerDoesNotMeanThatNothingRuns(t *testing.T) {
	away := errors.New("connection refused")
	_, _, err := openRun(t.Context(), described{err: away}, "server/db")
	require.ErrorIs(t, err, away)
	require.ErrorIs(t, busy(t.Context(), described{err: away}, "server/db"), away)
}
