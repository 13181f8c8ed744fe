package follow

import (
	"testing"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"

	"burrow.dev/burrow/cli/render"
	"burrow.dev/burrow/workflows"
)

// replayed reads a recorded history into a view; upTo < 0: all of it.
func replayed(t *testing.T, name string, upTo func(*historypb.HistoryEvent) bool) *reducer {
	t.Helper()
	r := newReducer("server/db")
	for _, e := range history(t, name) {
		r.apply(e)
		if upTo != nil && upTo(e) {
			break
		}
	}
	return r
}

func states(r *reducer) map[string]render.State {
	m := map[string]render.State{}
	for _, s := range r.op.Steps {
		m[s.Name] = s.State
	}
	return m
}

func TestASuccessShowsEveryStepDone(t *testing.T) {
	r := replayed(t, "v0.1-provision-success.json", nil)
	require.Equal(t, render.Done, r.op.State)
	for name, state := range states(r) {
		require.Equal(t, render.Done, state, name)
	}
}

func TestStepsThatHadNothingToDoAreSkipped(t *testing.T) {
	s := states(replayed(t, "v0.1-provision-no-playbook-no-keys.json", nil))
	require.Equal(t, render.Skipped, s["run playbook"])
	require.Equal(t, render.Skipped, s["fetch auth keys"])
	require.Equal(t, render.Done, s["finish"])
}

func TestAHoldShowsTheStepThatWaitsAndWhy(t *testing.T) {
	held := false
	r := replayed(t, "v0.1-provision-hold-retry.json", func(e *historypb.HistoryEvent) bool {
		up := e.GetUpsertWorkflowSearchAttributesEventAttributes().GetSearchAttributes().GetIndexedFields()["BurrowNeedsAttention"]
		held = held || string(up.GetData()) == "true"
		return held
	})
	require.True(t, held)
	require.True(t, r.held)
	require.Equal(t, render.Held, r.op.State)
	require.Equal(t, render.Held, states(r)["run playbook"])
	require.Contains(t, r.op.Message, "no luck")
}

func TestAfterARetryTheStepIsDoneAndItsErrorGone(t *testing.T) {
	r := replayed(t, "v0.1-provision-hold-retry.json", nil)
	require.Equal(t, render.Done, states(r)["run playbook"])
	require.Empty(t, r.step("run playbook").LastError)
	require.False(t, r.held)
}

func TestAFailureShowsItsReasonAndWhatItNeverReachedStaysPending(t *testing.T) {
	r := replayed(t, "v0.1-provision-permanent.json", nil)
	require.Equal(t, enumspb.WORKFLOW_EXECUTION_STATUS_FAILED, r.status)
	require.Contains(t, r.op.Message, "seed.Write: no luck")
	s := states(r)
	require.Equal(t, render.Failed, s["write seed"])
	require.Equal(t, render.Pending, s["run playbook"])
	require.Equal(t, render.Undone, s["undo"])
}

func TestACancelledOperationSaysWhatIsLeft(t *testing.T) {
	for kind, says := range map[string]string{
		workflows.NameProvisionServer: "everything it had made is removed",
		workflows.NamePowerServer:     "cancelled",
		workflows.NameRunPlaybook:     "what the playbook had done by then is done",
	} {
		r := newReducer("server/db")
		r.kind = kind
		r.apply(&historypb.HistoryEvent{EventType: enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED})
		require.Contains(t, r.op.Message, says, kind)
	}
}

func TestAnOperationThatAPersonDecidedOnIsNotHeldAnyMore(t *testing.T) {
	r := replayed(t, "v0.1-provision-hold-retry.json", func(e *historypb.HistoryEvent) bool {
		return e.GetEventType() == enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED
	})
	require.False(t, r.held, "its record may say so for a while yet")
	require.Equal(t, render.Running, r.op.State)

	r = newReducer("server/db")
	r.held, r.op.State = true, render.Held
	r.apply(&historypb.HistoryEvent{EventType: enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CANCEL_REQUESTED})
	require.False(t, r.held)
	require.Equal(t, render.Running, r.op.State)
}
