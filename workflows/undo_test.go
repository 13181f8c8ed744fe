package workflows

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/activities/state"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
)

func TestAnUndoThatNeedsAPersonGoesOnWhenItIsMended(t *testing.T) {
	w := newWorld(t)
	w.fail = func(name string, nth int) error {
		switch name {
		case activities.AnsibleRun:
			return failing(name, errs.Permanent, 1)(name, nth)
		case activities.VolumeRemove:
			return failing(name, errs.Operator, 3)(name, nth)
		}
		return nil
	}
	w.env.ExecuteWorkflow(ProvisionServer, dbServer())
	require.ErrorContains(t, w.env.GetWorkflowError(), "ansible.Run: no luck")
	require.NotContains(t, w.env.GetWorkflowError().Error(), "could not all be removed")
	require.Equal(t, 4, w.seen[activities.VolumeRemove])
	require.Less(t, slices.Index(w.calls(), activities.VolumeRemove), slices.Index(w.calls(), activities.IPAMRelease))
}

func TestAnUndoThatNeedsAPersonForWeeksDoesNotFillItsHistory(t *testing.T) {
	w := newWorld(t)
	w.fail = func(name string, nth int) error {
		if err := failing(activities.AnsibleRun, errs.Permanent, 1)(name, nth); err != nil {
			return err
		}
		return failing(activities.VolumeRemove, errs.Operator, 100)(name, nth)
	}
	began := w.env.Now()
	w.env.ExecuteWorkflow(ProvisionServer, dbServer())
	require.ErrorContains(t, w.env.GetWorkflowError(), "ansible.Run: no luck")
	require.Equal(t, 101, w.seen[activities.VolumeRemove])
	require.Greater(t, w.env.Now().Sub(began), 48*time.Hour)
}

func TestAnUndoThatMeetsSomethingForeignGoesOnWithTheOthersAndSaysSo(t *testing.T) {
	w := newWorld(t)
	w.fail = func(name string, nth int) error {
		if name == activities.AnsibleRun || name == activities.DomainRemove {
			return failing(name, errs.Permanent, 1)(name, nth)
		}
		return nil
	}
	w.env.ExecuteWorkflow(ProvisionServer, dbServer())
	err := w.env.GetWorkflowError()
	require.ErrorContains(t, err, "ansible.Run: no luck", "the first cause stays")
	require.ErrorContains(t, err, "domain.Remove: no luck")
	left := w.last[activities.StateFail].(state.FailIn).Left
	require.Equal(t, "kvm1", left.Host, "a delete must find what is left")
	require.NotEmpty(t, left.Disks)
	requireUndone(t, w.calls())
}

func TestAHostDoesNotBringUpByItselfWhatIsBeingUndone(t *testing.T) {
	w := newWorld(t)
	w.fail = failing(activities.GuestWaitReady, errs.Permanent, 1)
	w.env.ExecuteWorkflow(ProvisionServer, dbServer())
	require.ErrorContains(t, w.env.GetWorkflowError(), "no luck")
	calls := w.calls()
	failed := slices.Index(calls, activities.GuestWaitReady)
	require.Equal(t, activities.StateNote, calls[failed+1], "before the first undo")
	require.Empty(t, w.last[activities.StateNote].(state.NoteIn).Status.Disks, "which is how a host knows")
}

func TestAStepThatWasHeldAndRetriedIsUndoneOnce(t *testing.T) {
	w := newWorld(t)
	in := dbServer()
	in.Spec.OnFailure = manifest.OnFailureHold
	w.fail = func(name string, nth int) error {
		return cmp.Or(failing(activities.VolumeBuild, errs.Operator, 1)(name, nth), failing(activities.GuestWaitReady, errs.Permanent, 1)(name, nth))
	}
	w.env.RegisterDelayedCallback(func() { w.env.UpdateWorkflow(UpdateRetry, "u1", callbacks(t), RetryIn{}) }, time.Hour)
	w.env.ExecuteWorkflow(ProvisionServer, in)
	require.ErrorContains(t, w.env.GetWorkflowError(), "no luck")
	require.Equal(t, 1, w.seen[activities.VolumeRemove])
}
