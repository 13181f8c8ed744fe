package workflows

import (
	"testing"

	"github.com/stretchr/testify/require"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
)

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
