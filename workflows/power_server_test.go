package workflows

import (
	"testing"

	"github.com/stretchr/testify/require"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/activities/domain"
	"burrow.dev/burrow/activities/state"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
)

func TestAStartThatFailsLeavesTheServerStoppedNotPaused(t *testing.T) {
	w := newWorld(t)
	nothing[domain.ShutdownIn](w, activities.DomainShutdown)
	w.record = manifest.Status{Phase: manifest.PhaseUpdating, Host: "kvm1", PowerOff: true}
	w.fail = failing(activities.NetworkWire, errs.Permanent, 1)
	w.env.ExecuteWorkflow(PowerServer, PowerServerIn{Name: "db", Action: PowerStart})
	require.ErrorContains(t, w.env.GetWorkflowError(), "no luck")
	require.Equal(t, []string{activities.DomainShutdown, activities.NetworkUnwire, activities.StateFinish}, w.calls()[len(w.calls())-3:])
	require.Equal(t, manifest.PhaseStopped, w.last[activities.StateFinish].(state.FinishIn).Status.Phase)
}

func TestAStartThatFailsOnARunningServerLeavesItRunning(t *testing.T) {
	w := newWorld(t)
	w.record = manifest.Status{Phase: manifest.PhaseUpdating, Host: "kvm1"}
	w.fail = failing(activities.NetworkWire, errs.Permanent, 1)
	w.env.ExecuteWorkflow(PowerServer, PowerServerIn{Name: "db", Action: PowerStart})
	require.ErrorContains(t, w.env.GetWorkflowError(), "no luck")
	require.NotContains(t, w.calls(), activities.DomainShutdown)
	require.Equal(t, manifest.PhaseRunning, w.last[activities.StateFinish].(state.FinishIn).Status.Phase)
}

func TestAStartThatFailsOnAGuestThatHadPoweredItselfOffLeavesItOff(t *testing.T) {
	w := newWorld(t)
	nothing[domain.ShutdownIn](w, activities.DomainShutdown)
	w.record = manifest.Status{Phase: manifest.PhaseUpdating, Host: "kvm1", Operation: &manifest.Operation{Was: manifest.PhaseStopped}}
	w.fail = failing(activities.NetworkWire, errs.Permanent, 1)
	w.env.ExecuteWorkflow(PowerServer, PowerServerIn{Name: "db", Action: PowerStart})
	require.ErrorContains(t, w.env.GetWorkflowError(), "no luck")
	require.Equal(t, 1, w.seen[activities.DomainShutdown], "it was started, and is not wired")
	settled := w.last[activities.StateFinish].(state.FinishIn).Status
	require.Equal(t, manifest.PhaseStopped, settled.Phase)
	require.False(t, settled.PowerOff, "nobody stopped it")
}
