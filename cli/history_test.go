package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/activities/ansible"
	"burrow.dev/burrow/cli/render"
	"burrow.dev/burrow/internal/config"
	"burrow.dev/burrow/internal/devstacktest"
	"burrow.dev/burrow/manifest"
	"burrow.dev/burrow/workflows"
)

// storedLogs are the runs that have a log.
type storedLogs []string

func (s storedLogs) Runs(context.Context, manifest.Record) ([]string, error) { return s, nil }

func (s storedLogs) Open(context.Context, manifest.Record, string, bool) (io.ReadCloser, error) {
	return nil, io.EOF
}

func TestHistoryTellsWhoDidWhatAndHowEachRunEnded(t *testing.T) {
	stack := devstacktest.Stack(t)
	w := newWorld(t)
	w.put("db", manifest.PhaseRunning)
	w.deps.Logs = storedLogs{time.Now().Add(2*time.Second).UTC().Format("20060102-150405") + "-0002", time.Now().Add(-time.Hour).UTC().Format("20060102-150405") + "-early"}
	w.start()
	encoded, err := json.Marshal(config.Client{
		Gateway: w.socket, Temporal: config.Temporal{Address: stack.TemporalAddress, Namespace: stack.Namespace},
	})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(w.config, encoded, 0o600))

	// A run that fails with its details, then one that goes on until it is cut.
	work := worker.New(stack.Client, activities.ControlQueue, worker.Options{})
	work.RegisterWorkflowWithOptions(func(ctx workflow.Context, in workflows.ConfigureServerIn) error {
		ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute, Summary: "run playbook: site.yaml"})
		return workflow.ExecuteActivity(ctx, activities.AnsibleRun, ansible.RunIn{
			Bundle: "sha256:0123456789abcdef", Ansible: manifest.Ansible{
				Playbook: []string{"site.yaml"}, Tags: in.Tags,
				Source: &manifest.GitSource{URL: "https://h.test/x", Commit: "fedcba9876543210fedcba9876543210fedcba98"},
			},
		}).Get(ctx, nil)
	}, workflow.RegisterOptions{Name: workflows.NameConfigureServer})
	work.RegisterActivityWithOptions(func(ctx context.Context, in ansible.RunIn) (ansible.RunOut, error) {
		if len(in.Ansible.Tags) > 0 {
			return ansible.RunOut{}, activity.ErrResultPending
		}
		out := ansible.RunOut{RunID: "20260102-030405-0001", Requirements: "sha256:abcdef0123456789", Recap: map[string]manifest.Recap{"db": {OK: 2, Failed: 1}}}
		return ansible.RunOut{}, temporal.NewApplicationErrorWithOptions("server/db: run playbook: no such package", "Operator",
			temporal.ApplicationErrorOptions{NonRetryable: true, Details: []any{out}})
	}, activity.RegisterOptions{Name: activities.AnsibleRun})
	require.NoError(t, work.Start())
	defer work.Stop()
	ask := func(in workflows.ConfigureServerIn) client.WorkflowRun {
		run, err := stack.Client.ExecuteWorkflow(t.Context(), startOptions("server/db", ""), workflows.NameConfigureServer, in)
		require.NoError(t, err)
		return run
	}
	require.Error(t, ask(workflows.ConfigureServerIn{RequestedBy: "anna"}).Get(t.Context(), nil))
	ask(workflows.ConfigureServerIn{RequestedBy: "ben", Tags: []string{"later"}})

	read := func(args ...string) (doc historyDocument) {
		var out, errOut bytes.Buffer
		code := w.burrow(t.Context(), nil, &out, &errOut, append([]string{"history", "server", "db", "-o", "json"}, args...)...)
		require.Equal(t, ExitOK, code, errOut.String())
		require.NoError(t, json.Unmarshal(out.Bytes(), &doc))
		return doc
	}
	require.Eventually(t, func() bool { // visibility comes a moment later
		items := read().Items
		return len(items) == 2 && len(items[0].Playbooks) == 1
	}, soon, 50*time.Millisecond)
	doc := read("--step", "playbook")
	open, failed := doc.Items[0], doc.Items[1]
	require.Equal(t, []string{"ben", "anna"}, []string{open.RequestedBy, failed.RequestedBy}, "the latest is first")
	require.Equal(t, render.Failed, failed.State)
	require.Equal(t, "20260102-030405-0001", failed.Playbooks[0].RunID)
	require.Equal(t, manifest.Recap{OK: 2, Failed: 1}, failed.Playbooks[0].Recap["db"])
	require.Equal(t, "sha256:0123456789abcdef", failed.Playbooks[0].Bundle)
	require.Equal(t, render.Running, open.Playbooks[0].State)
	require.Contains(t, open.Playbooks[0].RunID, "0002", "by its time: what the last run's log is called")
	require.Len(t, read("--limit", "1").Items, 1)
	require.Empty(t, read("--step", "wire OVS").Items)

	var out, errOut bytes.Buffer
	require.Equal(t, ExitOK, w.burrow(t.Context(), nil, &out, &errOut, "history", "server/db", "--step", "playbook"), errOut.String())
	require.Regexp(t, `ConfigureServer +anna +site.yaml +0123456789ab commit fedcba987654 requirements abcdef012345 +\d+s +failed +ok=2 changed=0 failed=1 unreachable=0 +20260102-030405-0001 +server/db: run playbook: no such package`, out.String())
	out.Reset()
	require.Equal(t, ExitOther, w.burrow(t.Context(), nil, &out, &errOut, "history", "server/none"))
	require.Contains(t, errOut.String(), "Temporal has no operation of it")
}
