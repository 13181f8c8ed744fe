package follow

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"burrow.dev/burrow/cli/render"
)

// flaky is a Temporal that answers so many events of a history, then fails.
type flaky struct {
	client.Client
	all   []*historypb.HistoryEvent
	gives []int // events that the first, second … read gives; then all
	fails error
	runs  []string // that were asked for
}

func (c *flaky) GetWorkflowHistory(_ context.Context, _, run string, _ bool, _ enumspb.HistoryEventFilterType) client.HistoryEventIterator {
	c.runs = append(c.runs, run)
	it := &broken{events: c.all}
	if n := len(c.runs) - 1; n < len(c.gives) {
		it.events, it.fails = c.all[:c.gives[n]], c.fails
	}
	return it
}

func (c *flaky) DescribeWorkflow(context.Context, string, string) (*client.WorkflowExecutionDescription, error) {
	return nil, c.fails
}

func (c *flaky) DescribeTaskQueue(context.Context, string, enumspb.TaskQueueType) (*workflowservice.DescribeTaskQueueResponse, error) {
	return nil, c.fails
}

type broken struct {
	events []*historypb.HistoryEvent
	fails  error
}

func (b *broken) HasNext() bool { return len(b.events) > 0 || b.fails != nil }

func (b *broken) Next() (*historypb.HistoryEvent, error) {
	if len(b.events) == 0 {
		return nil, b.fails
	}
	e := b.events[0]
	b.events = b.events[1:]
	return e, nil
}

func history(t *testing.T, name string) []*historypb.HistoryEvent {
	t.Helper()
	f, err := os.Open(filepath.Join("..", "..", "workflows", "testdata", "histories", name))
	require.NoError(t, err)
	defer f.Close()
	h, err := client.HistoryFromJSON(f, client.HistoryJSONOptions{})
	require.NoError(t, err)
	return h.Events
}

func TestFollowingGoesOnWhenTemporalIsBack(t *testing.T) {
	all := history(t, "v0.1-provision-success.json")
	for _, err := range []error{context.DeadlineExceeded, serviceerror.NewUnavailable("connection refused"), serviceerror.NewDeadlineExceeded("")} {
		c := &flaky{all: all, gives: []int{0, len(all) / 2}, fails: err}
		var last []render.Operation
		out, got := Run(t.Context(), c, []Target{{ID: "server/db"}}, func(ops []render.Operation) { last = ops })
		require.NoError(t, got, "%v", err)
		require.Equal(t, enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED, out[0].Status)
		require.Equal(t, render.Done, last[0].State)
		run := all[0].GetWorkflowExecutionStartedEventAttributes().GetOriginalExecutionRunId()
		require.Equal(t, []string{"", "", run}, c.runs, "the run that was followed, whatever is the latest by then")
	}
}

func TestAnOperationThatIsNotThereIsNotWaitedFor(t *testing.T) {
	c := &flaky{gives: []int{0}, fails: serviceerror.NewNotFound("no such workflow")}
	_, err := Run(t.Context(), c, []Target{{ID: "server/db"}}, func([]render.Operation) {})
	require.ErrorContains(t, err, "no such workflow")
}
