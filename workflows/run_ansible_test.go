package workflows

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/activities/ansible"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
)

// taskFailed is the end of the first run of playbooks, by a task of it.
func taskFailed(name string, nth int) error {
	if name != activities.AnsibleRun || nth > 1 {
		return nil
	}
	return temporal.NewApplicationErrorWithOptions("server/db: run playbook: task failed", string(errs.Operator), temporal.ApplicationErrorOptions{
		NonRetryable: true, Details: []any{ansible.RunOut{RunID: "run-0", LogKey: "logs/run-0", Recap: map[string]manifest.Recap{"db": {Failed: 1}}}},
	})
}

func TestAPlaybookWhoseFailureIsIgnoredIsInTheRecordAsFailed(t *testing.T) {
	failed := manifest.PlaybookStatus{RunID: "run-0", LogKey: "logs/run-0", Recap: map[string]manifest.Recap{"db": {Failed: 1}}}
	t.Run("of a server", func(t *testing.T) {
		w := newWorld(t)
		w.fail = taskFailed
		in := dbServer()
		in.Spec.Ansible.OnFailure = manifest.OnFailureIgnore
		w.env.ExecuteWorkflow(ProvisionServer, in)
		require.NoError(t, w.env.GetWorkflowError())
		status := w.settledAs(t)
		require.Equal(t, manifest.PhaseRunning, status.Phase)
		status.Playbook.EndedAt = time.Time{}
		require.Equal(t, failed, *status.Playbook)
	})
	t.Run("of several", func(t *testing.T) {
		w := clusterWorld(t, nil)
		w.fail = taskFailed
		in := clusterPlaybook()
		in.Spec.OnFailure = manifest.OnFailureIgnore
		w.env.ExecuteWorkflow(RunPlaybook, in)
		require.NoError(t, w.env.GetWorkflowError())
		status := w.settledAs(t)
		require.Equal(t, manifest.PhaseReady, status.Phase)
		status.Playbook.EndedAt = time.Time{}
		require.Equal(t, failed, *status.Playbook)
	})
}
