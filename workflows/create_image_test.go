package workflows

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/activities/image"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
)

func TestAnImageThatIsCancelledWhileItIsPlacedLeavesNoReservation(t *testing.T) {
	w := newWorld(t)
	w.fail = failing(activities.PlaceRelease, errs.Transient, 2) // at least until the cancel
	w.env.RegisterDelayedCallback(w.env.CancelWorkflow, time.Second+time.Millisecond)
	w.env.ExecuteWorkflow(CreateImage, CreateImageIn{Metadata: manifest.Metadata{Name: "mine"}, Build: &image.BuildIn{Distro: "debian12"}})
	require.True(t, temporal.IsCanceledError(w.env.GetWorkflowError()))
	require.Equal(t, activities.StateRemove, last(w.calls()))
	require.Equal(t, activities.PlaceRelease, w.calls()[len(w.calls())-2], "undone")
}
