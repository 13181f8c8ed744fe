package workflows

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/activities/domain"
	"burrow.dev/burrow/activities/place"
	"burrow.dev/burrow/activities/state"
	"burrow.dev/burrow/activities/volume"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
)

func (w *world) updatable(t *testing.T) {
	t.Helper()
	w.stand(t)
	nothing[domain.ShutdownIn](w, activities.DomainShutdown)
	nothing[place.ResizeIn](w, activities.PlaceResize)
	answer(w, activities.VolumeAdd, func(in volume.AddIn) volume.AddOut {
		var out volume.AddOut
		for _, s := range in.Storage {
			out.Disks = append(out.Disks, manifest.Disk{Name: s.Name, Target: "vdc", Volume: "new-" + s.Name, Owned: s.Spec != nil})
		}
		return out
	})
	nothing[volume.DropIn](w, activities.VolumeDrop)
	nothing[domain.PlugIn](w, activities.DomainPlug)
	nothing[domain.PlugIn](w, activities.DomainUnplug)
	answer(w, activities.DomainGrow, func(in domain.GrowIn) domain.GrowOut { return domain.GrowOut{GiB: in.GiB} })
	answer(w, activities.DomainFit, func(in domain.FitIn) domain.FitOut {
		return domain.FitOut{Running: true, CPU: 2, Memory: 1024}
	})
	w.pluggable(t)
}

func updateWorld(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.updatable(t)
	return w
}

// changed is server/db, declared otherwise.
func changed(restart bool, change func(*UpdateServerIn)) UpdateServerIn {
	in := UpdateServerIn{ProvisionServerIn: dbServer(), Restart: restart}
	change(&in)
	return in
}

func everything(in *UpdateServerIn) {
	in.Spec.CPU = 4
	in.Spec.BootVolume.Size = 20
	in.Spec.Storage = append(in.Spec.Storage, manifest.Storage{Name: "scratch", Spec: &manifest.VolumeSpec{Size: 1}}, manifest.Storage{Name: "vol"})
	in.Bundle = "sha256:11"
}

func (w *world) finished(t *testing.T) state.FinishIn {
	t.Helper()
	in, ok := w.last[activities.StateFinish].(state.FinishIn)
	require.True(t, ok)
	return in
}

func TestWhatOnlyTheRecordSaysIsOnlyWrittenDown(t *testing.T) {
	w := updateWorld(t)
	w.env.ExecuteWorkflow(UpdateServer, changed(false, func(in *UpdateServerIn) { in.Metadata.Labels = map[string]string{"a": "b"} }))
	require.NoError(t, w.env.GetWorkflowError())
	require.Equal(t, []string{activities.StateBegin, activities.StateFinish}, w.calls())
	require.Equal(t, map[string]string{"a": "b"}, w.finished(t).Metadata.Labels)
	require.NotEmpty(t, w.finished(t).Spec)
	require.Equal(t, manifest.PhaseRunning, w.finished(t).Status.Phase)
}

func TestProcessorsWaitForARestartAndTheRecordSaysSo(t *testing.T) {
	w := updateWorld(t)
	w.env.ExecuteWorkflow(UpdateServer, changed(false, func(in *UpdateServerIn) { in.Spec.CPU = 4 }))
	require.NoError(t, w.env.GetWorkflowError())
	require.Equal(t, []string{activities.StateBegin, activities.PlaceResize, activities.DomainFit, activities.StateFinish}, w.calls())
	require.Equal(t, 4, w.last[activities.PlaceResize].(place.ResizeIn).CPU)
	require.Equal(t, manifest.ConditionRestart, w.finished(t).Status.Conditions[0].Type)

	restarted := newWorld(t)
	restarted.updatable(t)
	restarted.stands.Status = w.finished(t).Status
	restarted.env.ExecuteWorkflow(PowerServer, restart)
	require.NoError(t, restarted.env.GetWorkflowError())
	require.Empty(t, restarted.settledAs(t).Conditions)
}

func TestARestartBringsProcessorsNow(t *testing.T) {
	w := updateWorld(t)
	w.env.ExecuteWorkflow(UpdateServer, changed(true, func(in *UpdateServerIn) { in.Spec.CPU = 4 }))
	require.NoError(t, w.env.GetWorkflowError())
	require.Equal(t, []string{
		activities.StateBegin, activities.PlaceResize, activities.DomainShutdown, activities.NetworkUnwire, activities.NetworkEnsure, activities.DomainStart,
		activities.NetworkWire, activities.DomainResume, activities.GuestWaitReady, activities.StateFinish,
	}, w.calls())
	require.Equal(t, 4, w.last[activities.DomainStart].(domain.StartIn).CPU)
	require.Empty(t, w.finished(t).Status.Conditions)
}

func TestDisksArePluggedInAndGrowUnderTheGuestAndAChangedPlaybookRuns(t *testing.T) {
	w := updateWorld(t)
	w.env.ExecuteWorkflow(UpdateServer, changed(false, everything))
	require.NoError(t, w.env.GetWorkflowError())
	require.NotContains(t, w.calls(), activities.DomainShutdown)
	require.Equal(t, []string{"vol"}, w.last[activities.StateAttachVolumes].(state.VolumesIn).Names)
	require.Equal(t, []string{"vda"}, w.last[activities.VolumeAdd].(volume.AddIn).Taken)
	require.Len(t, w.last[activities.DomainPlug].(domain.PlugIn).Disks, 2)
	require.Equal(t, 20, w.last[activities.DomainGrow].(domain.GrowIn).GiB)
	require.Equal(t, "sha256:11", w.ran(t).Bundle)
	status := w.finished(t).Status
	require.Equal(t, "sha256:11", status.Bundle)
	require.Len(t, status.Disks, 3)
	require.Equal(t, 20, status.Disks[0].SizeGiB)
	require.Equal(t, "run-1", status.Playbook.RunID)
}

func TestWhatCannotBeChangedIsRefusedBeforeAnythingIsTouched(t *testing.T) {
	w := updateWorld(t)
	w.fail = failing(activities.StateBegin, errs.Permanent, 1)
	w.env.ExecuteWorkflow(UpdateServer, changed(false, everything))
	require.ErrorContains(t, w.env.GetWorkflowError(), "state.Begin: no luck")
	require.Equal(t, []string{activities.StateBegin}, w.calls())
}

func TestAServerThatIsAsDeclaredByThenIsLeftAlone(t *testing.T) {
	w := updateWorld(t)
	w.env.ExecuteWorkflow(UpdateServer, changed(true, func(*UpdateServerIn) {}))
	require.NoError(t, w.env.GetWorkflowError())
	require.Equal(t, []string{activities.StateBegin, activities.StateFinish}, w.calls())
	require.Equal(t, w.stands.Status, w.settledAs(t))
}

func TestAnAnswerWithoutADecisionChangesNothing(t *testing.T) {
	w := updateWorld(t)
	answer(w, activities.StateBegin, func(state.BeginIn) state.BeginOut { // as a worker of an earlier version answers
		return state.BeginOut{Found: true, Record: *w.stands}
	})
	w.env.ExecuteWorkflow(UpdateServer, changed(true, everything))
	require.ErrorContains(t, w.env.GetWorkflowError(), "use one version of burrow on all workers")
	require.Equal(t, w.stands.Status, w.settledAs(t))
}

func TestADroppedVolumeIsDetachedWhenTheGuestNoLongerHasIt(t *testing.T) {
	w := updateWorld(t)
	w.stands.Status.Disks = append(w.stands.Status.Disks, manifest.Disk{Name: "data-1", Target: "vdb", Volume: "vol-data-1"})
	w.env.ExecuteWorkflow(UpdateServer, changed(true, func(in *UpdateServerIn) { in.Spec.Storage = nil }))
	require.NoError(t, w.env.GetWorkflowError())
	require.Len(t, w.last[activities.DomainStart].(domain.StartIn).Disks, 1)
	require.Equal(t, activities.StateDetachVolumes, last(w.calls()), "it is free for others at the very end")
	require.Equal(t, []string{"data-1"}, w.last[activities.StateDetachVolumes].(state.VolumesIn).Names)
	require.NotContains(t, w.calls(), activities.VolumeDrop)
}

func TestAnUpdateThatFailsTakesBackWhatItMade(t *testing.T) {
	for _, restarts := range []bool{false, true} {
		steps := []string{activities.PlaceResize, activities.StateAttachVolumes, activities.VolumeAdd, activities.DomainGrow, activities.AnsibleRun, activities.StateFinish}
		if restarts {
			steps = append(steps, activities.DomainShutdown, activities.DomainStart, activities.NetworkWire, activities.DomainResume)
		} else {
			steps = append(steps, activities.DomainPlug)
		}
		for _, step := range steps {
			t.Run(step, func(t *testing.T) {
				w := updateWorld(t)
				w.fail = failing(step, errs.Permanent, 1)
				w.env.ExecuteWorkflow(UpdateServer, changed(restarts, everything))
				require.ErrorContains(t, w.env.GetWorkflowError(), step+": no luck")
				w.requireUnchanged(t, w.settledSayingWhy(t), step == activities.AnsibleRun || step == activities.StateFinish)
			})
		}
	}
}

// requireUnchanged checks that the server is what it was, but for a disk that has grown.
func (w *world) requireUnchanged(t *testing.T, settled manifest.Status, grown bool) {
	t.Helper()
	want := w.stands.Status
	if grown {
		want.Disks = slices.Clone(want.Disks)
		want.Disks[0].SizeGiB = 20
	}
	require.Equal(t, want, settled)
	require.Empty(t, w.finished(t).Spec, "what is declared stays")
	require.Equal(t, 2, w.last[activities.PlaceResize].(place.ResizeIn).CPU)
	if w.seen[activities.StateAttachVolumes] > 0 {
		require.Equal(t, []string{"scratch"}, w.last[activities.VolumeDrop].(volume.DropIn).Names)
		require.Equal(t, []string{"vol"}, w.last[activities.StateDetachVolumes].(state.VolumesIn).Names)
	}
	require.Equal(t, w.seen[activities.DomainPlug] > 0, w.seen[activities.DomainUnplug] > 0)
	if w.seen[activities.DomainShutdown] > 0 {
		start := w.last[activities.DomainStart].(domain.StartIn)
		require.Equal(t, 2, start.CPU)
		require.Len(t, start.Disks, 1)
	}
	require.NotContains(t, w.calls(), activities.VolumeRemove)
}

func TestADiskThatGrewAndSaidNothingIsRecordedAndReservedAsLargeAsItIs(t *testing.T) {
	w := updateWorld(t)
	grown := 0
	answer(w, activities.DomainGrow, func(in domain.GrowIn) domain.GrowOut {
		return domain.GrowOut{GiB: max(grown, in.GiB)}
	})
	w.fail = func(name string, nth int) error {
		if name == activities.DomainGrow && nth == 1 {
			grown = 20
		}
		return failing(activities.DomainGrow, errs.Permanent, 1)(name, nth)
	}
	w.env.ExecuteWorkflow(UpdateServer, changed(false, everything))
	require.ErrorContains(t, w.env.GetWorkflowError(), "domain.Grow: no luck")
	w.requireUnchanged(t, w.settledSayingWhy(t), true)
	require.Equal(t, map[string]int{"": 20}, w.last[activities.PlaceResize].(place.ResizeIn).DiskGiB)
}

func TestACancelInTheMiddleOfAnUpdateReturnsToTheOldSpec(t *testing.T) {
	w := updateWorld(t)
	w.fail = failing(activities.AnsibleRun, errs.Operator, 1)
	w.env.RegisterDelayedCallback(w.env.CancelWorkflow, time.Hour)
	w.env.ExecuteWorkflow(UpdateServer, changed(true, everything))
	require.Error(t, w.env.GetWorkflowError())
	w.requireUnchanged(t, w.settledAs(t), true)
}

func updateScenarios(t *testing.T) []scenario {
	completed, failed, cancelled := enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED, enumspb.WORKFLOW_EXECUTION_STATUS_FAILED, enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED
	one := func(name string, restarts bool, status enumspb.WorkflowExecutionStatus, fail func(string, int) error, decide func(*testing.T, client.Client)) scenario {
		return scenario{
			name: "update-" + name, workflow: NameUpdateServer, input: changed(restarts, everything),
			world: func(w *world) { w.updatable(t) }, status: status, fail: fail, decide: decide,
		}
	}
	broken := failing(activities.AnsibleRun, errs.Operator, 1)
	nics := func(name string, restarts bool, status enumspb.WorkflowExecutionStatus, fail func(string, int) error) scenario {
		sc := one("nics-"+name, restarts, status, fail, nil)
		sc.input = changed(restarts, swapAndGrow)
		sc.world = func(w *world) {
			w.updatable(t)
			w.haveTwoNICs(t)
		}
		return sc
	}
	return []scenario{
		nics("success", false, completed, nil),
		nics("restart", true, completed, nil),
		nics("permanent", false, failed, failing(activities.DomainUnplugNICs, errs.Permanent, 1)),
		one("success", false, completed, nil, nil),
		one("restart", true, completed, nil, nil),
		one("permanent", true, failed, failing(activities.DomainGrow, errs.Permanent, 1), nil),
		one("hold-retry", false, completed, broken, decides(UpdateRetry, RetryIn{})),
		one("hold-cancel", false, cancelled, broken, func(t *testing.T, c client.Client) {
			require.NoError(t, c.CancelWorkflow(t.Context(), "server/db", ""))
		}),
	}
}
