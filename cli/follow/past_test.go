package follow

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"burrow.dev/burrow/cli/render"
)

// pastOf reads a recorded history.
func pastOf(t *testing.T, name string) Past {
	t.Helper()
	f, err := os.Open(filepath.Join("..", "..", "workflows", "testdata", "histories", name))
	require.NoError(t, err)
	defer f.Close()
	h, err := client.HistoryFromJSON(f, client.HistoryJSONOptions{})
	require.NoError(t, err)
	p := newPastReducer("server/db", "run")
	for _, e := range h.Events {
		p.apply(e)
	}
	return p.past()
}

func TestARunThatFailedAndWasRetriedIsTwoRuns(t *testing.T) {
	p := pastOf(t, "v0.2-provision-hold-retry.json")
	require.Equal(t, "ProvisionServer", p.Operation)
	require.Equal(t, render.Done, p.State)
	require.Len(t, p.Playbooks, 2)
	failed, well := p.Playbooks[0], p.Playbooks[1]
	require.Equal(t, render.Failed, failed.State)
	require.Contains(t, failed.Message, "no luck")
	require.NotEmpty(t, failed.Playbook)
	require.NotEmpty(t, failed.Bundle)
	require.Equal(t, render.Done, well.State)
	require.NotEmpty(t, well.RunID)
	require.False(t, well.Ended.Before(well.Started))
}

func TestAHeldOperationThatWasCancelledKeepsItsFailedRun(t *testing.T) {
	p := pastOf(t, "v0.2-configure-hold-cancel.json")
	require.Equal(t, "ConfigureServer", p.Operation)
	require.Equal(t, render.Cancelled, p.State)
	require.Contains(t, p.Message, "cancelled")
	require.Equal(t, render.Failed, p.Playbooks[0].State)
}

func TestAnOperationWithoutPlaybookHasNoRun(t *testing.T) {
	require.Empty(t, pastOf(t, "v0.2-provision-no-playbook-no-keys.json").Playbooks)
}

func TestARunThatOnlyLookedSaysSo(t *testing.T) {
	require.True(t, pastOf(t, "v0.2-configure-check.json").Check)
	require.False(t, pastOf(t, "v0.2-configure-success.json").Check)
}
