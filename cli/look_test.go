package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"

	"burrow.dev/burrow/internal/config"
	"burrow.dev/burrow/internal/devstacktest"
	"burrow.dev/burrow/manifest"
)

func TestAnUnknownServerIsRefusedAtOnceWithTheOneThatWasMeant(t *testing.T) {
	w := newWorld(t)
	w.put("web", manifest.PhaseRunning)
	w.start()
	stack := devstacktest.Stack(t)
	encoded, err := json.Marshal(config.Client{
		Gateway: w.socket, Temporal: config.Temporal{Address: stack.TemporalAddress, Namespace: stack.Namespace},
	})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(w.config, encoded, 0o600))
	for _, command := range [][]string{
		{"start", "wbe"},
		{"stop", "wbe"},
		{"restart", "wbe"},
		{"start", "wbe", "--queue"},
		{"start", "wbe", "--detach"},
		{"rebuild", "wbe", "-y"},
		{"configure", "wbe"},
		{"retry", "server/wbe"},
		{"skip", "server/wbe"},
		{"abort", "server/wbe"},
		{"cancel", "server/wbe"},
		{"cancel", "--queued", "server/wbe"},
		{"delete", "server/wbe", "-y"},
		{"get", "server", "wbe"},
		{"describe", "server/wbe"},
	} {
		var out, errOut bytes.Buffer
		code := w.burrow(t.Context(), nil, &out, &errOut, command...)
		require.Equal(t, ExitOther, code, "%v: %s", command, errOut.String())
		require.Equal(t, "error: server/wbe: look up: not found; did you mean web?\n  next: `burrow get server` lists what there is\n", errOut.String(), command)
		require.Empty(t, out.String(), command)
	}
	runs, err := stack.Client.CountWorkflow(t.Context(), &workflowservice.CountWorkflowExecutionsRequest{})
	require.NoError(t, err)
	require.Zero(t, runs.GetCount(), "no operation was started for it")
}
