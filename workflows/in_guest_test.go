package workflows

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/activities/seed"
	"burrow.dev/burrow/activities/state"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
)

// pulling is dbServer with a playbook that its guest fetches and runs.
func pulling(onFailure manifest.OnFailure) ProvisionServerIn {
	in := dbServer()
	in.Bundle = ""
	in.Spec.Ansible = &manifest.Ansible{
		Playbook: []string{"local.yml"}, Pull: &manifest.Pull{URL: "https://h.test/site"}, OnFailure: onFailure, Timeout: "2h",
	}
	return in
}

func TestAPlaybookInTheGuestIsInItsSeedAndItsEndIsAwaited(t *testing.T) {
	w := newWorld(t)
	w.env.ExecuteWorkflow(ProvisionServer, pulling(manifest.OnFailureHold))
	require.NoError(t, w.env.GetWorkflowError())
	play := w.last[activities.SeedWrite].(seed.WriteIn).Play
	require.Equal(t, "https://h.test/site", play.Ansible.Pull.URL)
	require.Equal(t, []string{"db-net"}, play.Networks)
	require.Equal(t, seed.FirstPlay, w.ran(t).InGuest)
	require.Equal(t, "172.16.90.2", w.ran(t).Hosts[0].Address)
	require.NotContains(t, w.calls(), activities.AnsibleCheck, "nobody has it before the guest")
	require.Equal(t, "run-1", w.settledAs(t).Playbook.RunID)

	v, err := w.env.QueryWorkflow(QueryProgress)
	require.NoError(t, err)
	var p Progress
	require.NoError(t, v.Get(&p))
	for _, s := range p.Steps {
		if s.Name == stepPlaybook {
			require.Equal(t, "local.yml of https://h.test/site, in the guest", s.Detail)
		}
	}
}

func TestAFolderThatRunsInTheGuestIsCheckedBefore(t *testing.T) {
	w := newWorld(t)
	in := dbServer()
	in.Spec.Ansible.RemotePlaybook = true
	w.env.ExecuteWorkflow(ProvisionServer, in)
	require.NoError(t, w.env.GetWorkflowError())
	require.Contains(t, w.calls(), activities.AnsibleCheck)
	require.Equal(t, in.Bundle, w.last[activities.SeedWrite].(seed.WriteIn).Play.Bundle)
	require.Equal(t, in.Bundle, w.ran(t).Bundle)
}

func TestAServerWhosePlaybookRunsOutsideHasNoneInItsSeed(t *testing.T) {
	w := newWorld(t)
	w.env.ExecuteWorkflow(ProvisionServer, dbServer())
	require.NoError(t, w.env.GetWorkflowError())
	require.Nil(t, w.last[activities.SeedWrite].(seed.WriteIn).Play)
	require.Empty(t, w.ran(t).InGuest)
}

func TestAHeldPlaybookInTheGuestIsBegunAnewByRetry(t *testing.T) {
	w := newWorld(t)
	w.fail = failing(activities.AnsibleRun, errs.Operator, 2)
	var keys []string
	retry := func() {
		keys = append(keys, w.ran(t).InGuest)
		require.Contains(t, w.last[activities.StateHold].(state.HoldIn).Message, "no luck")
		w.env.UpdateWorkflow(UpdateRetry, "u"+keys[len(keys)-1], callbacks(t), RetryIn{})
	}
	w.env.RegisterDelayedCallback(retry, time.Hour)
	w.env.RegisterDelayedCallback(retry, 2*time.Hour)
	w.env.ExecuteWorkflow(ProvisionServer, pulling(manifest.OnFailureHold))
	require.NoError(t, w.env.GetWorkflowError())
	keys = append(keys, w.ran(t).InGuest)
	require.Equal(t, seed.FirstPlay, keys[0])
	require.True(t, strings.HasSuffix(keys[1], "-1") && strings.HasSuffix(keys[2], "-2"), "%v", keys)
	require.Equal(t, 1, w.seen[activities.DomainStart], "the server is not rebuilt")
	require.Equal(t, manifest.PhaseRunning, w.settledAs(t).Phase)
}

func TestAPlaybookInTheGuestThatFailsDoesWhatOnFailureSays(t *testing.T) {
	w := newWorld(t)
	w.fail = failing(activities.AnsibleRun, errs.Operator, 1)
	w.env.ExecuteWorkflow(ProvisionServer, pulling(manifest.OnFailureRollback))
	require.ErrorContains(t, w.env.GetWorkflowError(), "no luck")
	requireUndone(t, w.calls())

	w = newWorld(t)
	w.fail = failing(activities.AnsibleRun, errs.Operator, 1)
	w.env.ExecuteWorkflow(ProvisionServer, pulling(manifest.OnFailureIgnore))
	require.NoError(t, w.env.GetWorkflowError())
	require.Equal(t, manifest.PhaseRunning, w.settledAs(t).Phase)
	require.NotContains(t, w.calls(), activities.DomainRemove)
}

func TestConfigureRunsThePlaybookInTheGuestAnewAndOneThatIsNamedFromOutside(t *testing.T) {
	w := newWorld(t)
	rec := standingRecord(t, pulling(manifest.OnFailureHold))
	w.stands = &rec
	w.env.ExecuteWorkflow(ConfigureServer, ConfigureServerIn{Name: "db"})
	require.NoError(t, w.env.GetWorkflowError())
	require.True(t, strings.HasSuffix(w.ran(t).InGuest, "-1"), "not that of its first boot")
	require.NotNil(t, w.ran(t).Ansible.Pull)

	w = newWorld(t)
	w.stands = &rec
	w.env.ExecuteWorkflow(ConfigureServer, ConfigureServerIn{Name: "db", Bundle: "sha256:11", Playbook: []string{"other.yaml"}})
	require.NoError(t, w.env.GetWorkflowError())
	require.Empty(t, w.ran(t).InGuest)
	require.Nil(t, w.ran(t).Ansible.Pull)
}

func TestARebuildHasThePlaybookInTheNewSeed(t *testing.T) {
	w := rebuildWorld(t)
	rec := standingRecord(t, pulling(manifest.OnFailureHold))
	rec.Status.Disks = w.stands.Status.Disks
	w.stands = &rec
	w.env.ExecuteWorkflow(RebuildServer, RebuildServerIn{Name: "db"})
	require.NoError(t, w.env.GetWorkflowError())
	require.NotNil(t, w.last[activities.SeedWrite].(seed.WriteIn).Play)
	require.Equal(t, seed.FirstPlay, w.ran(t).InGuest)
}
