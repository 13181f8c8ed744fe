package workflows

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/activities/ansible"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
)

func TestAnEditedFolderIsOfNoCommit(t *testing.T) {
	fetched := &manifest.GitSource{URL: "https://h.test/site", Ref: "main", Commit: "0123456789abcdef0123456789abcdef01234567"}
	edited := func(w *world) {
		w.fail = failing(activities.AnsibleRun, errs.Operator, 1)
		w.env.RegisterDelayedCallback(func() {
			require.Equal(t, fetched, w.last[activities.AnsibleRun].(ansible.RunIn).Ansible.Source)
			w.env.UpdateWorkflow(UpdateRetry, "u1", callbacks(t), RetryIn{Bundle: "sha256:11"})
		}, time.Hour)
	}
	server := dbServer()
	server.Spec.Ansible.Source = fetched
	w := newWorld(t)
	edited(w)
	w.env.ExecuteWorkflow(ProvisionServer, server)
	require.NoError(t, w.env.GetWorkflowError())
	require.Equal(t, &manifest.GitSource{URL: "https://h.test/site", Ref: "main"}, w.last[activities.AnsibleRun].(ansible.RunIn).Ansible.Source)

	playbook := clusterPlaybook()
	playbook.Spec.Source = fetched
	w = clusterWorld(t, nil)
	edited(w)
	w.env.ExecuteWorkflow(RunPlaybook, playbook)
	require.NoError(t, w.env.GetWorkflowError())
	require.Equal(t, &manifest.GitSource{URL: "https://h.test/site", Ref: "main"}, w.ran(t).Ansible.Source)

	w = standingWorld(t)
	*w.stands = standingRecord(t, server)
	w.env.ExecuteWorkflow(ConfigureServer, ConfigureServerIn{Name: "db", Bundle: "sha256:11", Playbook: []string{"other.yaml"}})
	require.NoError(t, w.env.GetWorkflowError())
	require.Nil(t, w.ran(t).Ansible.Source, "another folder has nothing to do with it")
}
