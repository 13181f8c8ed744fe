package workflows

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/activities/ansible"
	"burrow.dev/burrow/activities/state"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
)

func clusterPlaybook() RunPlaybookIn {
	return RunPlaybookIn{
		Metadata: manifest.Metadata{Name: "cluster"}, Bundle: "sha256:00", RequestedBy: "ops",
		Spec: manifest.PlaybookSpec{
			Ansible: manifest.Ansible{Playbook: []string{"site.yaml"}, Timeout: "2h", OnFailure: manifest.OnFailureHold},
			Targets: manifest.Targets{Selector: map[string]string{"role": "web"}},
		},
	}
}

// clusterWorld has two servers for the playbook; earlier is the record of an earlier run.
func clusterWorld(t *testing.T, earlier *manifest.Record) *world {
	t.Helper()
	w := newWorld(t)
	w.cluster(earlier)
	return w
}

func (w *world) cluster(earlier *manifest.Record) {
	w.stands = earlier
	answer(w, activities.StateLook, func(state.LookIn) state.LookOut {
		if earlier == nil {
			return state.LookOut{}
		}
		return state.LookOut{Found: true, Record: *earlier}
	})
	answer(w, activities.StateTargets, func(in state.TargetsIn) state.TargetsOut {
		var out state.TargetsOut
		for _, name := range []string{"web-1", "web-2"} {
			out.Servers = append(out.Servers, state.Target{
				Server: activities.Server{Name: name, UID: "uid-" + name}, Identity: name + "@uid-" + name + ".0", Host: "kvm1", Login: "debian",
				Ports: []manifest.Port{{Network: "web-net", Addresses: []string{"172.16.90.2/24"}}}, Labels: map[string]string{"role": "web"}, Image: "debian12",
			})
		}
		return out
	})
}

func earlierRun(t *testing.T) *manifest.Record {
	t.Helper()
	rec := manifest.Record{Kind: manifest.KindPlaybook, Spec: specOr(nil)}
	rec.Metadata.Metadata, rec.Metadata.UID = manifest.Metadata{Name: "cluster"}, "uid-1"
	rec.Status = manifest.Status{Phase: manifest.PhaseReady, Bundle: "sha256:99", Targets: []string{"web-1@uid-web-1.0"}}
	return &rec
}

func TestAPlaybookRunsOverAllItsServersAndSaysWhich(t *testing.T) {
	w := clusterWorld(t, nil)
	w.env.ExecuteWorkflow(RunPlaybook, clusterPlaybook())
	require.NoError(t, w.env.GetWorkflowError())
	require.Equal(t, []string{
		activities.StateLook, activities.StateBegin, activities.AnsibleCheck, activities.StateTargets, activities.StateNote,
		activities.GuestWaitReady, activities.GuestWaitReady, activities.AnsibleRun, activities.StateFinish,
	}, w.calls())
	run := w.ran(t)
	require.True(t, run.Whole)
	require.Equal(t, "playbook/cluster", run.Owner)
	require.Len(t, run.Hosts, 2)
	require.Equal(t, ansible.Host{
		Server: activities.Server{Name: "web-2", UID: "uid-web-2"}, Network: "web-net", Address: "172.16.90.2", Login: "debian",
		Labels: map[string]string{"role": "web"}, Image: "debian12", Networks: []string{"web-net"},
	}, run.Hosts[1])
	status := w.settledAs(t)
	require.Equal(t, manifest.PhaseReady, status.Phase)
	require.Equal(t, []string{"web-1@uid-web-1.0", "web-2@uid-web-2.0"}, status.Targets)
	require.Equal(t, "run-1", status.Playbook.RunID)
	require.Equal(t, "sha256:00", status.Bundle)
}

func TestAPlaybookThatRanBeforeIsUpdated(t *testing.T) {
	w := clusterWorld(t, earlierRun(t))
	w.env.ExecuteWorkflow(RunPlaybook, clusterPlaybook())
	require.NoError(t, w.env.GetWorkflowError())
	require.Equal(t, manifest.PhaseUpdating, w.last[activities.StateBegin].(state.BeginIn).Phase)
	require.NotEmpty(t, w.last[activities.StateFinish].(state.FinishIn).Spec)
}

func TestAHeldPlaybookGoesOnWithAnEditedFolder(t *testing.T) {
	w := clusterWorld(t, nil)
	w.fail = failing(activities.AnsibleRun, errs.Operator, 1)
	w.env.RegisterDelayedCallback(func() {
		require.Equal(t, manifest.KindPlaybook, w.last[activities.StateHold].(state.HoldIn).Kind)
		w.env.UpdateWorkflow(UpdateRetry, "u1", callbacks(t), RetryIn{Bundle: "sha256:11"})
	}, time.Hour)
	w.env.ExecuteWorkflow(RunPlaybook, clusterPlaybook())
	require.NoError(t, w.env.GetWorkflowError())
	require.Equal(t, "sha256:11", w.ran(t).Bundle)
	require.Equal(t, "sha256:11", w.settledAs(t).Bundle)
}

func TestAPlaybookThatIsGivenUpSaysSo(t *testing.T) {
	abort := func(t *testing.T, w *world) {
		w.env.UpdateWorkflow(UpdateAbort, "u1", callbacks(t), DecisionIn{})
	}
	cancel := func(_ *testing.T, w *world) { w.env.CancelWorkflow() }
	for name, one := range map[string]struct {
		earlier *manifest.Record
		end     func(*testing.T, *world)
		last    string
	}{
		"a new one, aborted":      {nil, abort, activities.StateFail},
		"a new one, cancelled":    {nil, cancel, activities.StateRemove},
		"one that ran, aborted":   {earlierRun(t), abort, activities.StateFail},
		"one that ran, cancelled": {earlierRun(t), cancel, activities.StateFinish},
	} {
		t.Run(name, func(t *testing.T) {
			w := clusterWorld(t, one.earlier)
			w.fail = failing(activities.AnsibleRun, errs.Operator, 1)
			w.env.RegisterDelayedCallback(func() { one.end(t, w) }, time.Hour)
			w.env.ExecuteWorkflow(RunPlaybook, clusterPlaybook())
			require.Error(t, w.env.GetWorkflowError())
			require.Equal(t, one.last == activities.StateRemove || one.last == activities.StateFinish, temporal.IsCanceledError(w.env.GetWorkflowError()))
			calls := w.calls()
			require.Equal(t, one.last, calls[len(calls)-1])
			require.Equal(t, ansible.ReapIn{Owner: "playbook/cluster"}, w.last[activities.AnsibleReap])
			if one.last == activities.StateFinish {
				require.Equal(t, one.earlier.Status, w.settledAs(t))
			}
		})
	}
}

func TestAPlaybookDoesNotWaitForEverForAServerThatNobodyCanLogInTo(t *testing.T) {
	w := clusterWorld(t, nil)
	began := w.env.Now()
	w.fail = failing(activities.GuestWaitReady, errs.Transient, 1_000_000)
	w.env.ExecuteWorkflow(RunPlaybook, clusterPlaybook())
	require.ErrorContains(t, w.env.GetWorkflowError(), "wait until ready: the guest did not get there in 5m0s")
	require.ErrorContains(t, w.env.GetWorkflowError(), "burrow console web-")
	require.Less(t, w.env.Now().Sub(began), time.Hour)
	require.NotContains(t, w.calls(), activities.AnsibleRun)
}

func TestAPlaybookWithoutServersFailsBeforeItRuns(t *testing.T) {
	w := clusterWorld(t, nil)
	w.fail = failing(activities.StateTargets, errs.Permanent, 1)
	w.env.ExecuteWorkflow(RunPlaybook, clusterPlaybook())
	require.ErrorContains(t, w.env.GetWorkflowError(), "no luck")
	require.NotContains(t, w.calls(), activities.AnsibleRun)
	require.Contains(t, w.calls(), activities.StateFail)
}

func TestAPlaybookThatIsCancelledBeforeItsRecordIsTakenChangesNothing(t *testing.T) {
	w := clusterWorld(t, earlierRun(t))
	// The cancel comes in one workflow task with the answer that it ran before.
	cancelled := func(ctx workflow.Context) error {
		op, err := begin(ctx, NameRunPlaybook, "playbook/cluster", manifest.PhaseProvisioning, sequence{})
		require.NoError(t, err)
		r := &playbookRun{operation: op, in: clusterPlaybook(), ran: true}
		return r.failed(ctx, temporal.NewCanceledError())
	}
	w.env.RegisterWorkflowWithOptions(cancelled, workflow.RegisterOptions{Name: "Cancelled"})
	w.env.ExecuteWorkflow("Cancelled")
	require.True(t, temporal.IsCanceledError(w.env.GetWorkflowError()), w.env.GetWorkflowError())
	require.Empty(t, w.calls())
}
