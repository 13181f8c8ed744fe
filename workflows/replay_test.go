package workflows

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

const histories = "testdata/histories"

// replayer knows every workflow under its registered name.
func replayer() worker.WorkflowReplayer {
	r := worker.NewWorkflowReplayer()
	for name, run := range Registered() {
		r.RegisterWorkflowWithOptions(run, workflow.RegisterOptions{Name: name})
	}
	return r
}

func readHistory(t *testing.T, path string) *historypb.History {
	t.Helper()
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	h, err := client.HistoryFromJSON(f, client.HistoryJSONOptions{})
	require.NoError(t, err)
	return h
}

// TestEveryRecordedHistoryReplays is the promise to operations that are under way while
// the program is replaced: a change that breaks one goes behind workflow.GetVersion.
func TestEveryRecordedHistoryReplays(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(histories, "*.json"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			require.NoError(t, replayer().ReplayWorkflowHistory(nil, readHistory(t, file)))
		})
	}
}

// TestAChangedStepOrderFailsTheReplay shows that the replay would notice.
func TestAChangedStepOrderFailsTheReplay(t *testing.T) {
	r := worker.NewWorkflowReplayer()
	r.RegisterWorkflowWithOptions(func(ctx workflow.Context, in ProvisionServerIn) error {
		p := &provision{in: in}
		body := sequence{step{stepPlace, p.place}, step{stepRecord, p.record}}
		op, err := begin(ctx, NameProvisionServer, "server/db", "", body)
		if err != nil {
			return err
		}
		p.operation = op
		return op.run(ctx, body)
	}, workflow.RegisterOptions{Name: NameProvisionServer})
	err := r.ReplayWorkflowHistory(nil, readHistory(t, filepath.Join(histories, "v0.1-provision-success.json")))
	require.ErrorContains(t, err, "TMPRL1100", "Temporal's rule for non-determinism")
}
