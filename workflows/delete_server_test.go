package workflows

import (
	"testing"

	"github.com/stretchr/testify/require"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/activities/state"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
)

func TestADeleteThatIsRefusedLeavesARecordThatSaysWhyAndKnowsTheRest(t *testing.T) {
	w := newWorld(t)
	w.record = manifest.Status{Phase: manifest.PhaseDeleting, Host: "kvm1"}
	w.fail = failing(activities.DomainRemove, errs.Permanent, 1)
	w.env.ExecuteWorkflow(DeleteServer, DeleteIn{Name: "db"})
	require.ErrorContains(t, w.env.GetWorkflowError(), "no luck")
	require.Equal(t, activities.StateFail, last(w.calls()))
	failed := w.last[activities.StateFail].(state.FailIn)
	require.Contains(t, failed.Message, "no luck")
	require.Equal(t, "kvm1", failed.Left.Host)
}

func TestACancelDoesNotStopADeleteHalfWay(t *testing.T) {
	w := newWorld(t)
	w.record = manifest.Status{Phase: manifest.PhaseDeleting, Host: "kvm1"}
	w.fail = func(name string, nth int) error {
		if name == activities.DomainRemove && nth == 1 {
			w.env.CancelWorkflow()
		}
		return failing(activities.DomainRemove, errs.Transient, 1)(name, nth)
	}
	w.env.ExecuteWorkflow(DeleteServer, DeleteIn{Name: "db"})
	require.NoError(t, w.env.GetWorkflowError())
	calls := w.calls()
	for _, name := range []string{activities.VolumeRemove, activities.NetworkRelease, activities.IPAMRelease, activities.PlaceRelease} {
		require.Contains(t, calls, name)
	}
	require.Equal(t, activities.StateRemove, last(calls))
}
