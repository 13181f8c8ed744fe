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
	"burrow.dev/burrow/activities/seed"
	"burrow.dev/burrow/activities/state"
	"burrow.dev/burrow/activities/volume"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
)

// The volumes of a server that is rebuilt.
const (
	oldBoot = "db-uid-1-boot.qcow2"
	newBoot = "db-uid-1-boot2.qcow2"
)

func (w *world) rebuildable(t *testing.T) {
	t.Helper()
	w.stand(t)
	w.stands.Status.Disks = append(w.stands.Status.Disks, manifest.Disk{Name: "data-1", Target: "vdb", Volume: "vol-data-1"})
	nothing[domain.ShutdownIn](w, activities.DomainShutdown)
	answer(w, activities.VolumeRebuild, func(in volume.RebuildIn) volume.RebuildOut {
		return volume.RebuildOut{Disk: manifest.Disk{Name: "boot", Target: "vda", Volume: newBoot, SizeGiB: in.Boot.Size}}
	})
	nothing[volume.DiscardIn](w, activities.VolumeDiscard)
	nothing[seed.PruneIn](w, activities.SeedPrune)
	answer(w, activities.SeedWrite, func(in seed.WriteIn) seed.WriteOut {
		return seed.WriteOut{Path: "/seed2.iso", Login: "debian", HostKeys: []string{"ssh-ed25519 BBBB"}}
	})
}

func rebuildWorld(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.rebuildable(t)
	return w
}

func TestARebuildKeepsTheOldBootDiskUntilTheNewServerIsReady(t *testing.T) {
	w := rebuildWorld(t)
	w.env.ExecuteWorkflow(RebuildServer, RebuildServerIn{Name: "db", Image: "debian13"})
	require.NoError(t, w.env.GetWorkflowError())
	calls := w.calls()
	at := -1
	for _, name := range []string{
		activities.StateBegin, activities.ImageEnsure, activities.VolumeRebuild, activities.SeedWrite, activities.DomainShutdown, activities.NetworkUnwire,
		activities.DomainStart, activities.NetworkWire, activities.DomainResume, activities.GuestWaitReady, activities.AnsibleRun, activities.StateFinish,
		activities.VolumeDiscard, activities.SeedPrune,
	} {
		i := slices.Index(calls, name)
		require.Greater(t, i, at, "%s after what comes before it in %v", name, calls)
		at = i
	}
	require.Equal(t, oldBoot, w.last[activities.VolumeRebuild].(volume.RebuildIn).InUse)
	require.Equal(t, 10, w.last[activities.VolumeRebuild].(volume.RebuildIn).Boot.Size, "as large as the old one")
	require.Equal(t, newBoot, w.last[activities.VolumeDiscard].(volume.DiscardIn).InUse)
	require.Equal(t, 1, w.last[activities.SeedWrite].(seed.WriteIn).Rebuild)
	start := w.last[activities.DomainStart].(domain.StartIn)
	require.Equal(t, []string{newBoot, "vol-data-1"}, []string{start.Disks[0].Volume, start.Disks[1].Volume})
	require.Equal(t, "uid-1", start.Server.UID)
	finish := w.last[activities.StateFinish].(state.FinishIn)
	require.Equal(t, 1, finish.Status.Rebuild)
	require.Equal(t, newBoot, finish.Status.Disks[0].Volume)
	require.Contains(t, string(finish.Spec), `"mmImage":"debian13"`)
}

func TestARebuildThatFailsRunsTheOldServerAgain(t *testing.T) {
	for _, step := range []string{
		activities.VolumeRebuild, activities.SeedWrite, activities.DomainShutdown, activities.NetworkUnwire, activities.NetworkEnsure,
		activities.DomainStart, activities.NetworkWire, activities.DomainResume, activities.GuestWaitReady, activities.AnsibleRun, activities.StateFinish,
	} {
		t.Run(step, func(t *testing.T) {
			w := rebuildWorld(t)
			w.fail = failing(step, errs.Permanent, 1)
			w.env.ExecuteWorkflow(RebuildServer, RebuildServerIn{Name: "db"})
			require.ErrorContains(t, w.env.GetWorkflowError(), step+": no luck")
			w.requireAsBefore(t, w.settledSayingWhy(t))
		})
	}
}

// Paused and off the wire it would be neither Running nor Stopped.
func TestAGuestThatCannotBePutBackIsLeftOff(t *testing.T) {
	for _, step := range []string{activities.NetworkWire, activities.DomainResume} {
		t.Run(step, func(t *testing.T) {
			w := rebuildWorld(t)
			w.fail = func(name string, nth int) error {
				if name == activities.GuestWaitReady || name == step && nth == 2 {
					return failing(name, errs.Permanent, nth)(name, nth)
				}
				return nil
			}
			w.env.ExecuteWorkflow(RebuildServer, RebuildServerIn{Name: "db"})
			require.ErrorContains(t, w.env.GetWorkflowError(), step+": no luck")
			calls := w.calls()
			require.Greater(t, lastIndex(calls, activities.DomainShutdown), lastIndex(calls, step))
			require.Greater(t, lastIndex(calls, activities.NetworkUnwire), lastIndex(calls, activities.DomainShutdown))
			status := w.settledAs(t)
			require.Equal(t, manifest.PhaseStopped, status.Phase)
			require.Contains(t, status.Conditions[0].Message, "not all of it could be taken back: undo "+stepShutdown)
		})
	}
}

func TestARebuildThatIsCancelledOrAbortedRunsTheOldServerAgain(t *testing.T) {
	for name, end := range map[string]func(*testing.T, *world){
		"abort":  func(t *testing.T, w *world) { w.env.UpdateWorkflow(UpdateAbort, "u1", callbacks(t), DecisionIn{}) },
		"cancel": func(_ *testing.T, w *world) { w.env.CancelWorkflow() },
	} {
		t.Run(name, func(t *testing.T) {
			w := rebuildWorld(t)
			w.fail = failing(activities.AnsibleRun, errs.Operator, 1)
			w.env.RegisterDelayedCallback(func() {
				hold := w.last[activities.StateHold].(state.HoldIn)
				require.Equal(t, newBoot, hold.Status.Disks[0].Volume, "a host that boots meanwhile starts what is being built")
				end(t, w)
			}, time.Hour)
			w.env.ExecuteWorkflow(RebuildServer, RebuildServerIn{Name: "db"})
			require.Error(t, w.env.GetWorkflowError())
			w.requireAsBefore(t, w.settledAs(t))
		})
	}
}

// requireAsBefore checks that the old server runs, as far as it was ever stopped, and that
// only the new one's volume and seed were deleted.
func (w *world) requireAsBefore(t *testing.T, settled manifest.Status) {
	t.Helper()
	calls := w.calls()
	if slices.Contains(calls, activities.DomainShutdown) {
		start := w.last[activities.DomainStart].(domain.StartIn)
		require.Equal(t, oldBoot, start.Disks[0].Volume)
		require.Equal(t, "/seed.iso", start.Seed)
		require.Less(t, lastIndex(calls, activities.DomainResume), lastIndex(calls, activities.VolumeDiscard), "its disk goes when nothing runs from it")
	}
	require.Equal(t, oldBoot, w.last[activities.VolumeDiscard].(volume.DiscardIn).InUse)
	if prune, ok := w.last[activities.SeedPrune].(seed.PruneIn); ok {
		require.Equal(t, "/seed.iso", prune.Keep)
	}
	if hold, ok := w.last[activities.StateHold].(state.HoldIn); ok {
		require.Equal(t, oldBoot, hold.Status.Disks[0].Volume, "nor does a host that boots in the middle of the undo start it")
	}
	require.Equal(t, w.stands.Status, settled)
	for _, gone := range []string{activities.VolumeRemove, activities.SeedRemove, activities.IPAMRelease, activities.PlaceRelease, activities.DomainRemove, activities.StateFail, activities.StateRemove} {
		require.NotContains(t, calls, gone)
	}
}

func lastIndex(calls []string, name string) int {
	for i, c := range slices.Backward(calls) {
		if c == name {
			return i
		}
	}
	return -1
}

func TestAStoppedServerThatCannotBeRebuiltStaysStopped(t *testing.T) {
	for name, byPerson := range map[string]bool{"a person stopped it": true, "its guest powered itself off": false} {
		t.Run(name, func(t *testing.T) {
			w := rebuildWorld(t)
			w.stands.Status.PowerOff, w.stands.Status.Phase = byPerson, manifest.PhaseStopped
			w.fail = failing(activities.GuestWaitReady, errs.Permanent, 1)
			w.env.ExecuteWorkflow(RebuildServer, RebuildServerIn{Name: "db"})
			require.Error(t, w.env.GetWorkflowError())
			require.Equal(t, w.stands.Status, w.settledSayingWhy(t))
			require.Equal(t, 1, w.seen[activities.DomainStart], "only the new one was started")
		})
	}
}

func TestACancelThatComesWithTheEndOfARebuildComesTooLate(t *testing.T) {
	w := rebuildWorld(t)
	w.fail = func(name string, _ int) error {
		if name == activities.StateFinish {
			w.env.CancelWorkflow()
		}
		return nil
	}
	w.env.ExecuteWorkflow(RebuildServer, RebuildServerIn{Name: "db"})
	require.NoError(t, w.env.GetWorkflowError())
	require.Equal(t, newBoot, w.last[activities.VolumeDiscard].(volume.DiscardIn).InUse)
	require.Equal(t, 1, w.seen[activities.StateFinish])
}

func rebuildScenarios(t *testing.T) []scenario {
	completed, failed, cancelled := enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED, enumspb.WORKFLOW_EXECUTION_STATUS_FAILED, enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED
	one := func(name string, status enumspb.WorkflowExecutionStatus, fail func(string, int) error, decide func(*testing.T, client.Client)) scenario {
		return scenario{
			name: "rebuild-" + name, workflow: NameRebuildServer, input: RebuildServerIn{Name: "db"},
			world: func(w *world) { w.rebuildable(t) }, status: status, fail: fail, decide: decide,
		}
	}
	broken := failing(activities.AnsibleRun, errs.Operator, 1)
	return []scenario{
		one("success", completed, nil, nil),
		one("permanent", failed, failing(activities.GuestWaitReady, errs.Permanent, 1), nil),
		one("hold-retry", completed, broken, decides(UpdateRetry, RetryIn{})),
		one("hold-cancel", cancelled, broken, func(t *testing.T, c client.Client) {
			require.NoError(t, c.CancelWorkflow(t.Context(), "server/db", ""))
		}),
	}
}
