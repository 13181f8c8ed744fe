package workflows

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/encoding/protojson"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/internal/devstacktest"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
)

var recordAs = flag.String("record", "", "write the histories of the scenarios with this prefix (a release's name)")

const (
	waitMost  = 30 * time.Second
	waitEvery = 50 * time.Millisecond
)

// scenario is one way an operation goes; its history is committed once a release.
type scenario struct {
	name string
	fail func(name string, nth int) error
	in   func(*ProvisionServerIn)
	// workflow and input are another operation than a provision of server/db; world sets
	// up what it finds.
	workflow string
	input    any
	world    func(*world)
	decide   func(t *testing.T, c client.Client)
	status   enumspb.WorkflowExecutionStatus
}

func scenarios() []scenario {
	completed, failed, cancelled := enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED, enumspb.WORKFLOW_EXECUTION_STATUS_FAILED, enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED
	return []scenario{
		{name: "success", status: completed},
		{name: "no-playbook-no-keys", status: completed, in: func(in *ProvisionServerIn) {
			in.Spec.Ansible, in.Spec.Auth = nil, manifest.Auth{}
		}},
		{name: "transient", status: completed, fail: failing(activities.VolumeBuild, errs.Transient, 2)},
		{name: "permanent", status: failed, fail: failing(activities.SeedWrite, errs.Permanent, 1)},
		{name: "hold-retry", status: completed, fail: failing(activities.AnsibleRun, errs.Operator, 1), decide: decides(UpdateRetry, RetryIn{Bundle: "sha256:11"})},
		{name: "hold-skip", status: completed, fail: failing(activities.AnsibleRun, errs.Operator, 1), decide: decides(UpdateSkip, DecisionIn{})},
		{name: "hold-abort", status: failed, fail: failing(activities.AnsibleRun, errs.Operator, 1), decide: decides(UpdateAbort, DecisionIn{})},
		{name: "hold-cancel", status: cancelled, fail: failing(activities.AnsibleRun, errs.Operator, 1), decide: func(t *testing.T, c client.Client) {
			require.NoError(t, c.CancelWorkflow(t.Context(), "server/db", ""))
		}},
	}
}

func decides(update string, arg any) func(*testing.T, client.Client) {
	return func(t *testing.T, c client.Client) {
		h, err := c.UpdateWorkflow(t.Context(), client.UpdateWorkflowOptions{
			WorkflowID: "server/db", UpdateName: update, Args: []any{arg}, WaitForStage: client.WorkflowUpdateStageCompleted,
		})
		require.NoError(t, err)
		require.NoError(t, h.Get(t.Context(), nil))
	}
}

// TestScenariosOnRealTemporal runs every scenario on a real server and replays what it
// recorded at once; with -record it also writes the history.
func TestScenariosOnRealTemporal(t *testing.T) {
	stack := devstacktest.Stack(t)
	for _, sc := range slices.Concat(scenarios(), configureScenarios(t), rebuildScenarios(t), updateScenarios(t)) {
		t.Run(sc.name, func(t *testing.T) {
			w := newWorld(t)
			w.fail = sc.fail
			if sc.world != nil {
				sc.world(w)
			}
			runWorker(t, stack.Client, w)
			in := dbServer()
			if sc.in != nil {
				sc.in(&in)
			}
			workflow, input, file := NameProvisionServer, any(in), "provision-"+sc.name
			if sc.workflow != "" {
				workflow, input, file = sc.workflow, sc.input, sc.name
			}
			run, err := stack.Client.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{
				ID: "server/db", TaskQueue: activities.ControlQueue, StaticSummary: "build server/db",
			}, workflow, input)
			require.NoError(t, err)
			if sc.decide != nil {
				awaitHeld(t, stack.Client)
				sc.decide(t, stack.Client)
			}
			_ = run.Get(t.Context(), nil) // its status is looked at below
			d, err := stack.Client.DescribeWorkflow(t.Context(), "server/db", run.GetRunID())
			require.NoError(t, err)
			require.Equal(t, sc.status, d.Status)
			h := fetch(t, stack.Client, "server/db", run.GetRunID())
			require.NoError(t, replayer().ReplayWorkflowHistory(nil, h))
			if *recordAs != "" {
				write(t, filepath.Join(histories, *recordAs+file+".json"), h)
			}
		})
	}
}

// runWorker polls both queues with the world's activities until the test ends.
func runWorker(t *testing.T, c client.Client, w *world) {
	t.Helper()
	for _, queue := range []string{activities.ControlQueue, activities.HostQueue("kvm1")} {
		wk := worker.New(c, queue, worker.Options{})
		for name, run := range Registered() {
			wk.RegisterWorkflowWithOptions(run, workflow.RegisterOptions{Name: name})
		}
		w.register(wk)
		require.NoError(t, wk.Start())
		t.Cleanup(wk.Stop)
	}
}

func awaitHeld(t *testing.T, c client.Client) {
	t.Helper()
	require.Eventually(t, func() bool {
		v, err := c.QueryWorkflow(t.Context(), "server/db", "", QueryProgress)
		var p Progress
		return err == nil && v.Get(&p) == nil && p.Phase == manifest.PhaseHeld
	}, waitMost, waitEvery)
}

func fetch(t *testing.T, c client.Client, id, runID string) *historypb.History {
	t.Helper()
	h := &historypb.History{}
	for it := c.GetWorkflowHistory(context.Background(), id, runID, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT); it.HasNext(); {
		e, err := it.Next()
		require.NoError(t, err)
		h.Events = append(h.Events, e)
	}
	return h
}

func write(t *testing.T, path string, h *historypb.History) {
	t.Helper()
	b, err := protojson.MarshalOptions{Multiline: true, Indent: " "}.Marshal(h)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, append(b, '\n'), 0o644))
}
