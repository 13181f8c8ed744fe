package workflows

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/activities/domain"
	"burrow.dev/burrow/activities/state"
	"burrow.dev/burrow/internal/devstacktest"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
)

// queueing is a server that is held on a real Temporal, and what the tests queue behind it.
type queueing struct {
	*world
	client client.Client
}

func newQueue(t *testing.T) *queueing {
	t.Helper()
	stack := devstacktest.Stack(t)
	q := &queueing{newWorld(t), stack.Client}
	q.fail = failing(activities.AnsibleRun, errs.Operator, 1)
	q.record = manifest.Status{Phase: manifest.PhaseUpdating, Host: "kvm1"}
	answer(q.world, activities.StateAwaitClosed, func(state.AwaitClosedIn) activities.Nothing { return activities.Nothing{} })
	real := state.New(nil, q.client)
	q.all[activities.StateAwaitClosed] = real.AwaitClosed
	nothing[domain.ShutdownIn](q.world, activities.DomainShutdown)
	runWorker(t, q.client, q.world)
	q.start(t, "server/db", NameProvisionServer, dbServer())
	awaitHeld(t, q.client)
	return q
}

func (q *queueing) start(t *testing.T, id, name string, in any) client.WorkflowRun {
	t.Helper()
	run, err := q.client.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{
		ID: id, TaskQueue: activities.ControlQueue, WorkflowExecutionErrorWhenAlreadyStarted: true,
	}, name, in)
	require.NoError(t, err)
	return run
}

// awaitStatus waits until a workflow's latest run stands so.
func (q *queueing) awaitStatus(t *testing.T, id, kind string, want enumspb.WorkflowExecutionStatus) {
	t.Helper()
	require.Eventually(t, func() bool {
		d, err := q.client.DescribeWorkflow(t.Context(), id, "")
		return err == nil && d.Status == want && d.WorkflowType.Name == kind
	}, waitMost, waitEvery)
}

func (q *queueing) keep(t *testing.T, run client.WorkflowRun, name string) {
	t.Helper()
	h := fetch(t, q.client, run.GetID(), run.GetRunID())
	require.NoError(t, replayer().ReplayWorkflowHistory(nil, h))
	if *recordAs != "" {
		write(t, filepath.Join(histories, *recordAs+name+".json"), h)
	}
}

var restart = PowerServerIn{Name: "db", Action: PowerRestart}

func TestAQueuedOperationStartsAfterTheOpenOneAndFreesTheQueue(t *testing.T) {
	q := newQueue(t)
	waits := q.start(t, NextID("server/db"), NameStartNext, StartNextIn{Ref: "server/db", Next: Operation{PowerServer: &restart}, RequestedBy: "ops"})
	_, err := q.client.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{
		ID: NextID("server/db"), TaskQueue: activities.ControlQueue, WorkflowExecutionErrorWhenAlreadyStarted: true,
	}, NameStartNext, StartNextIn{Ref: "server/db", Next: Operation{PowerServer: &restart}})
	require.Error(t, err, "the queue has one place")
	decides(UpdateSkip, DecisionIn{})(t, q.client)
	require.NoError(t, waits.Get(t.Context(), nil))
	q.awaitStatus(t, "server/db", NamePowerServer, enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED)
	q.keep(t, waits, "next-success")
}

func TestAQueuedOperationThatIsTakenOutNeverStarts(t *testing.T) {
	q := newQueue(t)
	waits := q.start(t, NextID("server/db"), NameStartNext, StartNextIn{Ref: "server/db", Next: Operation{PowerServer: &restart}})
	require.NoError(t, q.client.CancelWorkflow(t.Context(), NextID("server/db"), ""))
	require.Error(t, waits.Get(t.Context(), nil))
	decides(UpdateAbort, DecisionIn{})(t, q.client)
	q.awaitStatus(t, "server/db", NameProvisionServer, enumspb.WORKFLOW_EXECUTION_STATUS_FAILED)
	require.NotContains(t, q.calls(), activities.DomainShutdown)
	q.keep(t, waits, "next-cancel")
}

func TestAnApplyThatQueuesDecidesWhatToDoWhenItsTurnComes(t *testing.T) {
	for name, stands := range map[string]bool{"is built": false, "stands as declared": true} {
		t.Run(name, func(t *testing.T) {
			q := newQueue(t)
			in := dbServer()
			in.Spec.Ansible, in.Bundle = nil, ""
			answer(q.world, activities.StateLook, func(look state.LookIn) state.LookOut {
				require.Equal(t, "db", look.Name)
				rec := standingRecord(t, in)
				if !stands {
					return state.LookOut{}
				}
				decision, err := manifest.Decide(&rec, *look.Declared)
				require.NoError(t, err)
				return state.LookOut{Found: true, Record: rec, Decision: decision}
			})
			runWorker(t, q.client, q.world)
			run := q.start(t, "apply/1", NameApplyDocuments, ApplyIn{Queue: true, Documents: []Document{{Ref: "server/db", Server: &in}}})
			q.awaitStatus(t, NextID("server/db"), NameStartNext, enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING)
			decides(UpdateAbort, DecisionIn{})(t, q.client)
			var out ApplyOut
			require.NoError(t, run.Get(t.Context(), &out))
			require.Equal(t, []DocumentResult{{Ref: "server/db"}}, out.Results)
			want := enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED
			if stands {
				want = enumspb.WORKFLOW_EXECUTION_STATUS_FAILED // the one that was aborted is the last
			}
			q.awaitStatus(t, "server/db", NameProvisionServer, want)
			if !stands {
				q.keep(t, run, "apply-queued")
			}
		})
	}
}
