package workflows

import (
	"testing"

	"github.com/stretchr/testify/require"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/activities/ipam"
	"burrow.dev/burrow/activities/state"
	"burrow.dev/burrow/activities/volume"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
)

// library is a world with one volume and one network that are Ready.
func library(t *testing.T) *world {
	w := newWorld(t)
	answer(w, activities.StateBegin, func(in state.BeginIn) state.BeginOut {
		return state.BeginOut{Found: true, Record: manifest.Record{
			Kind: in.Kind, Metadata: manifest.RecordMeta{Metadata: in.Metadata, UID: "uid-1"},
			Status: manifest.Status{Phase: manifest.PhaseDeleting, Host: "kvm1"},
		}}
	})
	nothing[volume.DeleteIn](w, activities.VolumeDelete)
	nothing[ipam.ForgetNetworkIn](w, activities.IPAMForgetNetwork)
	return w
}

func TestARefusedDeleteLeavesTheRecordAsItWas(t *testing.T) {
	w := library(t)
	w.fail = failing(activities.IPAMForgetNetwork, errs.Permanent, 1)
	w.env.ExecuteWorkflow(DeleteNetwork, DeleteIn{Name: "db-net"})
	require.ErrorContains(t, w.env.GetWorkflowError(), "no luck")
	require.Equal(t, manifest.PhaseReady, w.last[activities.StateFinish].(state.FinishIn).Status.Phase)
}

func TestADeleteThatFailsWhenTheDataIsGoneNeverSaysReadyAgain(t *testing.T) {
	w := library(t)
	w.fail = failing(activities.PlaceRelease, errs.Permanent, 1)
	w.env.ExecuteWorkflow(DeleteVolume, DeleteIn{Name: "data"})
	require.ErrorContains(t, w.env.GetWorkflowError(), "no luck")
	require.Contains(t, w.calls(), activities.VolumeDelete)
	require.NotContains(t, w.calls(), activities.StateFinish)
	failed := w.last[activities.StateFail].(state.FailIn)
	require.Contains(t, failed.Message, "no luck")
	require.Equal(t, "kvm1", failed.Left.Host, "the next delete knows where the rest is")
}

func TestACancelDoesNotStopTheDeleteOfAVolume(t *testing.T) {
	w := library(t)
	w.env.RegisterDelayedCallback(w.env.CancelWorkflow, 0)
	w.env.ExecuteWorkflow(DeleteVolume, DeleteIn{Name: "data"})
	require.NoError(t, w.env.GetWorkflowError())
	require.Contains(t, w.calls(), activities.VolumeDelete)
	require.Equal(t, activities.StateRemove, last(w.calls()))
}
