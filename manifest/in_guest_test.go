package manifest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAPlaybookMayRunInTheGuest(t *testing.T) {
	set, problems := loadText(t, serverText("ansible:\n    pull: {url: 'https://h.test/site.git'}\n    extraVars: {a: 1}\n    tags: [x]\n"), Options{})
	require.NoError(t, problems.Err())
	a := set.Documents[0].Server.Ansible
	require.True(t, a.InGuest())
	require.Equal(t, &Pull{URL: "https://h.test/site.git"}, a.Pull)
	require.Equal(t, []string{"local.yml"}, a.Playbook)
	require.Equal(t, OnFailureHold, a.OnFailure)
	require.Equal(t, 3, a.Retries)

	set, problems = loadText(t, serverText("ansible: {pull: {url: 'file:///srv/site', playbook_yaml: plays/./db.yml}}\n"), Options{})
	require.NoError(t, problems.Err())
	require.Equal(t, []string{"plays/db.yml"}, set.Documents[0].Server.Ansible.Playbook)

	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "site.yaml"), []byte("- hosts: all\n"), 0o600))
	set, problems = loadText(t, serverText("ansible: {remotePlaybook: ./site.yaml}\n"), Options{WorkDir: dir})
	require.NoError(t, problems.Err())
	a = set.Documents[0].Server.Ansible
	require.True(t, a.InGuest() && a.RemotePlaybook)
	require.Equal(t, []string{"site.yaml"}, a.Playbook)
}

func TestWhatCannotRunInTheGuestIsRefusedByName(t *testing.T) {
	for fields, says := range map[string]string{
		"{}": "spec.ansible.playbook: is required",
		"{pull: {url: 'https://h.test/a'}, playbook: site.yaml}":               "spec.ansible.playbook: runs from outside",
		"{pull: {url: 'https://h.test/a'}, remotePlaybook: site.yaml}":         "spec.ansible.remotePlaybook: is beside pull",
		"{pull: {url: 'https://h.test/a'}, requirements: r.yml}":               "spec.ansible.requirements: is for what runs from outside",
		"{pull: {url: 'https://h.test/a'}, inventory: hosts}":                  "spec.ansible.inventory: is for what runs from outside",
		"{pull: {url: 'https://h.test/a'}, source: {url: 'https://h.test/b'}}": "spec.ansible.source: is for what runs from outside",
		"{pull: {url: 'https://h.test/a'}, vaultPassword: 'secret:v'}":         "spec.ansible.vaultPassword: is a secret",
		"{pull: {url: 'https://h.test/a'}, becomePassword: 'secret:v'}":        "spec.ansible.becomePassword: is a secret",
		"{pull: {url: 'https://h.test/a'}, extraVars: {a: {b: ['secret:v']}}}": "spec.ansible.extraVars.a.b[0]: is a secret",
		"{pull: {url: 'https://h.test/a'}, extra-args: [--limit, x]}":          "spec.ansible.extra-args",
		"{pull: {url: 'https://h.test/a', playbook_yaml: ../x.yml}}":           "is not inside the repository",
		"{pull: {url: 'https://h.test/a', playbook_yaml: /etc/x.yml}}":         "is not inside the repository",
		"{pull: {url: 'http://h.test/a'}}":                                     "is not https, ssh or file",
		"{pull: {playbook_yaml: x.yml}}":                                       "spec.ansible.pull.url: is required",
		"{remotePlaybook: nowhere.yaml}":                                       "spec.ansible.remotePlaybook",
		"{remotePlaybook: site.yaml, extraVars: {a: 'secret:v'}}":              "spec.ansible.extraVars.a: is a secret",
		"{pull: {url: 'https://h.test/a'}, onBoot: true}":                      "spec.ansible.onBoot",
	} {
		_, problems := loadText(t, serverText("ansible: "+fields+"\n"), Options{WorkDir: t.TempDir()})
		require.ErrorContains(t, problems.Err(), says, fields)
	}
	for _, fields := range []string{"pull: {url: 'https://h.test/hunter2'}\n", "remotePlaybook: site.yaml\n"} {
		_, problems := loadText(t, playbookText(fields), Options{})
		require.ErrorContains(t, problems.Err(), "a Playbook runs over several from outside", fields)
	}
	_, problems := loadText(t, serverText("ansible: {pull: {url: 'https://u:hunter2@h.test/a'}}\n"), Options{})
	require.ErrorContains(t, problems.Err(), "has a login in it")
	require.NotContains(t, problems.Error(), "hunter2")
	_, problems = loadText(t, serverText("readiness: running\nansible: {pull: {url: 'https://h.test/a'}}\n"), Options{})
	require.ErrorContains(t, problems.Err(), "spec.readiness")
}
