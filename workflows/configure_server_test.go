package workflows

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/activities/ansible"
	"burrow.dev/burrow/activities/state"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
)

// stand makes the world's server/db one that stands: its record is as dbServer declares.
func (w *world) stand(t *testing.T) {
	t.Helper()
	rec := standingRecord(t, dbServer())
	w.stands = &rec
	answer(w, activities.StateLook, func(state.LookIn) state.LookOut { return state.LookOut{Found: true, Record: rec} })
}

func standingWorld(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.stand(t)
	return w
}

// settledAs is the status with which the record was settled.
func (w *world) settledAs(t *testing.T) manifest.Status {
	t.Helper()
	in, ok := w.last[activities.StateFinish].(state.FinishIn)
	require.True(t, ok, "the record was settled")
	return in.Status
}

// settledSayingWhy is settledAs without the condition that says why the operation failed.
func (w *world) settledSayingWhy(t *testing.T) manifest.Status {
	t.Helper()
	status := w.settledAs(t)
	i := slices.IndexFunc(status.Conditions, func(c manifest.Condition) bool {
		return c.Type == manifest.ConditionUnfinished && c.Reason == manifest.ReasonFailed && c.Message != ""
	})
	require.GreaterOrEqual(t, i, 0, "the record says why: %v", status.Conditions)
	if status.Conditions = slices.Delete(slices.Clone(status.Conditions), i, i+1); len(status.Conditions) == 0 {
		status.Conditions = nil
	}
	return status
}

func (w *world) ran(t *testing.T) ansible.RunIn {
	t.Helper()
	in, ok := w.last[activities.AnsibleRun].(ansible.RunIn)
	require.True(t, ok, "a playbook ran")
	return in
}

func TestConfigureRunsTheRecordedPlaybookAndRecordsTheRun(t *testing.T) {
	w := standingWorld(t)
	w.env.ExecuteWorkflow(ConfigureServer, ConfigureServerIn{
		Name: "db", Tags: []string{"users"}, ExtraVars: map[string]any{"a": "b"}, Diff: true,
	})
	require.NoError(t, w.env.GetWorkflowError())
	require.Equal(t, []string{
		activities.StateBegin, activities.AnsibleCheck, activities.GuestWaitReady, activities.AnsibleRun, activities.StateFinish,
	}, w.calls())
	run := w.ran(t)
	require.Equal(t, "sha256:00", run.Bundle)
	require.Equal(t, []string{"site.yaml"}, run.Ansible.Playbook)
	require.Equal(t, []string{"users"}, run.Ansible.Tags)
	require.Equal(t, map[string]any{"a": "b"}, run.Ansible.ExtraVars)
	require.Equal(t, []string{"--diff"}, run.Ansible.ExtraArgs)
	require.Equal(t, "172.16.90.2", run.Hosts[0].Address)
	status := w.settledAs(t)
	require.Equal(t, manifest.PhaseRunning, status.Phase)
	require.Equal(t, "run-1", status.Playbook.RunID)
	require.Equal(t, "sha256:00", status.Bundle)
}

func TestAnotherPlaybookIsForThisRunOnly(t *testing.T) {
	w := standingWorld(t)
	w.env.ExecuteWorkflow(ConfigureServer, ConfigureServerIn{Name: "db", Bundle: "sha256:11", Playbook: []string{"other.yaml"}})
	require.NoError(t, w.env.GetWorkflowError())
	require.Equal(t, "sha256:11", w.ran(t).Bundle)
	require.Equal(t, []string{"other.yaml"}, w.ran(t).Ansible.Playbook)
	require.Equal(t, "sha256:00", w.settledAs(t).Bundle)
}

func TestRequirementsAreThoseOfThePlaybookThatRuns(t *testing.T) {
	for name, want := range map[string]string{"other.yaml": "", "": "requirements.yml"} {
		server := dbServer()
		server.Spec.Ansible.Requirements = "requirements.yml"
		w := standingWorld(t)
		*w.stands = standingRecord(t, server)
		in := ConfigureServerIn{Name: "db", Bundle: "sha256:11"}
		if name != "" {
			in.Playbook = []string{name}
		}
		w.env.ExecuteWorkflow(ConfigureServer, in)
		require.NoError(t, w.env.GetWorkflowError())
		require.Equal(t, want, w.ran(t).Ansible.Requirements)
		require.Equal(t, want, w.last[activities.AnsibleCheck].(ansible.CheckIn).Ansible.Requirements)
	}
}

func TestACheckWritesNothingDown(t *testing.T) {
	w := standingWorld(t)
	w.env.ExecuteWorkflow(ConfigureServer, ConfigureServerIn{Name: "db", Check: true})
	require.NoError(t, w.env.GetWorkflowError())
	require.Equal(t, []string{activities.StateLook, activities.AnsibleCheck, activities.GuestWaitReady, activities.AnsibleRun}, w.calls())
	require.Equal(t, []string{"--check"}, w.ran(t).Ansible.ExtraArgs)
	require.Zero(t, w.ran(t).Ansible.Retries)
	var out ConfigureServerOut
	require.NoError(t, w.env.GetWorkflowResult(&out))
	require.True(t, out.Check)
}

func TestAFailedCheckIsNotHeldAndWritesNothingDown(t *testing.T) {
	w := standingWorld(t)
	w.fail = failing(activities.AnsibleRun, errs.Operator, 1)
	w.env.ExecuteWorkflow(ConfigureServer, ConfigureServerIn{Name: "db", Check: true})
	require.ErrorContains(t, w.env.GetWorkflowError(), "no luck")
	for _, name := range []string{activities.StateBegin, activities.StateHold, activities.StateFinish, activities.StateFail} {
		require.NotContains(t, w.calls(), name)
	}
}

func TestAConfigureThatIsGivenUpLeavesTheServerRunningAsItWas(t *testing.T) {
	for name, end := range map[string]func(*testing.T, *world){
		"abort":  func(t *testing.T, w *world) { w.env.UpdateWorkflow(UpdateAbort, "u1", callbacks(t), DecisionIn{}) },
		"cancel": func(_ *testing.T, w *world) { w.env.CancelWorkflow() },
	} {
		t.Run(name, func(t *testing.T) {
			w := standingWorld(t)
			w.fail = failing(activities.AnsibleRun, errs.Operator, 1)
			w.env.RegisterDelayedCallback(func() {
				hold := w.last[activities.StateHold].(state.HoldIn)
				require.Equal(t, manifest.PhaseUpdating, hold.Going)
				require.Equal(t, NameConfigureServer, hold.Status.Operation.Type)
				end(t, w)
			}, time.Hour)
			w.env.ExecuteWorkflow(ConfigureServer, ConfigureServerIn{Name: "db"})
			require.Error(t, w.env.GetWorkflowError())
			require.Equal(t, name == "cancel", temporal.IsCanceledError(w.env.GetWorkflowError()))
			require.Contains(t, w.calls(), activities.AnsibleReap)
			require.Equal(t, w.stands.Status, w.settledAs(t))
			for _, gone := range undone[1:] {
				require.NotContains(t, w.calls(), gone)
			}
		})
	}
}

func TestAHeldConfigureGoesOnWithAnEditedPlaybook(t *testing.T) {
	w := standingWorld(t)
	w.fail = failing(activities.AnsibleRun, errs.Operator, 1)
	w.env.RegisterDelayedCallback(func() { w.env.UpdateWorkflow(UpdateRetry, "u1", callbacks(t), RetryIn{Bundle: "sha256:11"}) }, time.Hour)
	w.env.ExecuteWorkflow(ConfigureServer, ConfigureServerIn{Name: "db"})
	require.NoError(t, w.env.GetWorkflowError())
	require.Equal(t, "sha256:11", w.ran(t).Bundle)
}

func TestAServerWithoutAPlaybookOrWithoutPowerIsNotConfigured(t *testing.T) {
	w := standingWorld(t)
	bare := dbServer()
	bare.Spec.Ansible = nil
	*w.stands = standingRecord(t, bare)
	w.env.ExecuteWorkflow(ConfigureServer, ConfigureServerIn{Name: "db"})
	require.ErrorContains(t, w.env.GetWorkflowError(), "server/db: configure: it has no playbook")
	require.Equal(t, []string{activities.StateBegin, activities.StateFinish}, w.calls())

	for _, byPerson := range []bool{true, false} {
		w = standingWorld(t)
		w.stands.Status.PowerOff, w.stands.Status.Phase = byPerson, manifest.PhaseStopped
		w.env.ExecuteWorkflow(ConfigureServer, ConfigureServerIn{Name: "db"})
		require.ErrorContains(t, w.env.GetWorkflowError(), "it is stopped")
		require.Equal(t, manifest.PhaseStopped, w.settledAs(t).Phase)
		require.Zero(t, w.seen[activities.GuestWaitReady])
	}
}

// configureScenarios are recorded beside those of a build.
func configureScenarios(t *testing.T) []scenario {
	completed, failed, cancelled := enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED, enumspb.WORKFLOW_EXECUTION_STATUS_FAILED, enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED
	in := ConfigureServerIn{Name: "db"}
	stand := func(w *world) { w.stand(t) }
	broken := failing(activities.AnsibleRun, errs.Operator, 1)
	return []scenario{
		{name: "configure-success", workflow: NameConfigureServer, input: in, world: stand, status: completed},
		{name: "configure-check", workflow: NameConfigureServer, input: ConfigureServerIn{Name: "db", Check: true}, world: stand, status: completed},
		{name: "configure-permanent", workflow: NameConfigureServer, input: in, world: stand, status: failed, fail: failing(activities.AnsibleCheck, errs.Permanent, 1)},
		{name: "configure-hold-retry", workflow: NameConfigureServer, input: in, world: stand, status: completed, fail: broken, decide: decides(UpdateRetry, RetryIn{})},
		{name: "configure-hold-cancel", workflow: NameConfigureServer, input: in, world: stand, status: cancelled, fail: broken, decide: func(t *testing.T, c client.Client) {
			require.NoError(t, c.CancelWorkflow(t.Context(), "server/db", ""))
		}},
	}
}

func TestTheReasonOfAFailureStaysUntilTheNextOperationSucceeds(t *testing.T) {
	w := standingWorld(t)
	w.stands.Status.Conditions = []manifest.Condition{
		{Type: manifest.ConditionUnfinished, Status: true, Reason: manifest.ReasonFailed, Message: "UpdateServer failed: no room"},
		{Type: manifest.ConditionRestart, Status: true, Reason: "Updated"},
	}
	w.env.ExecuteWorkflow(ConfigureServer, ConfigureServerIn{Name: "db"})
	require.NoError(t, w.env.GetWorkflowError())
	require.Equal(t, w.stands.Status.Conditions[1:], w.settledAs(t).Conditions)
}
