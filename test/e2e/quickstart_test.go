package e2e

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"burrow.dev/burrow/manifest"
)

// TestTheQuickstartEndsWithADatabaseOnItsDataVolume runs the README's example, first with
// a playbook that fails: the server is held, mended by a retry with the edited folder, and
// not rebuilt. What both were given of secrets is in nothing that burrow writes or shows.
func TestTheQuickstartEndsWithADatabaseOnItsDataVolume(t *testing.T) {
	if testing.Short() {
		t.Skip("boots a guest and installs a database")
	}
	s := newStack(t)
	s.image("debian12")
	good, broken := t.TempDir(), t.TempDir()
	for _, dir := range []string{good, broken} {
		require.NoError(t, os.CopyFS(dir, os.DirFS(filepath.Join("..", "..", "examples", "quickstart"))))
		nameSecrets(t, filepath.Join(dir, "quickstart.yaml"))
	}
	for name, value := range plantedSecrets {
		s.setSecret(name, value)
	}
	require.NoError(t, os.WriteFile(filepath.Join(broken, "playbook", "mysql-setup.yaml"), []byte(`
- name: Set up the database
  hosts: db
  gather_facts: false
  tasks:
    - name: Hide what it prints
      ansible.builtin.command: echo {{ 'plugh-of-' ~ 'no-log' }}
      no_log: true
    - name: Print a secret
      ansible.builtin.command: cat
      args: {stdin: "the word is {{ word }}"}
      register: printed
    - name: Fail on purpose
      ansible.builtin.fail:
        msg: "this playbook is broken on purpose: {{ printed.stdout }}"
`), 0o600))

	code, out := s.code("apply", "-f", broken)
	require.Equal(t, 6, code, "held")
	require.Contains(t, out, "Fail on purpose")
	held, ok := s.record("server", "db")
	require.True(t, ok)
	require.Equal(t, manifest.PhaseHeld, held.Status.Phase)
	described := s.run("describe", "server", "db")
	require.Contains(t, described, "this playbook is broken on purpose")
	require.Contains(t, described, "Fail on purpose")
	require.Contains(t, described, "burrow logs db", "where all of it is")
	logs := s.run("logs", "db")
	require.Contains(t, logs, "broken on purpose: the word is ***")
	s.keepsSecrets(t, out, described, logs, s.run("history", "server", "db", "-o", "json"), s.run("get", "server", "db", "-o", "json"))

	s.run("retry", "server/db", "-f", filepath.Join(good, "playbook"))
	rec := s.running("db")
	require.Equal(t, held.Metadata.UID, rec.Metadata.UID, "the server is the same, not built again")

	out = s.run("ssh", "db", "--", "sudo", "mysql", "-N", "-e", "'select @@datadir'")
	datadir := strings.TrimSpace(out)
	source := s.run("ssh", "db", "--", "findmnt", "-n", "-o", "SOURCE", "--target", datadir)
	require.Contains(t, source, "/dev/vdb", "the database is on the data volume")

	s.configuredTwice(t, "db")

	code, _ = s.code("apply", "-f", good)
	require.Zero(t, code)
	s.run("delete", "server", "db", "-y")
	vol, ok := s.record("volume", "data-1")
	require.True(t, ok, "the persistent volume stays")
	require.Empty(t, vol.Status.Volume.AttachedTo)
	require.FileExists(t, vol.Status.Volume.Path)
	code, out = s.code("delete", "network", "no-such", "-y")
	require.Equal(t, 1, code, out)
	s.run("delete", "volume/data-1", "network/db-net", "-y")
	require.NoFileExists(t, vol.Status.Volume.Path)
}

// plantedSecrets are what the quickstart's playbook is given by name.
var plantedSecrets = map[string]string{
	"planted-word": "plugh-of-a-variable", "planted-vault": "plugh-of-the-vault", "planted-become": "plugh-of-become",
}

// nameSecrets has a manifest's playbook use all of them.
func nameSecrets(t *testing.T, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	const before = "    inventory: playbook/hosts.yaml\n"
	require.Contains(t, string(text), before)
	require.NoError(t, os.WriteFile(file, []byte(strings.Replace(string(text), before, before+
		"    extraVars: {word: \"secret:planted-word\"}\n    vaultPassword: secret:planted-vault\n    becomePassword: secret:planted-become\n", 1)), 0o600))
}

// keepsSecrets looks for the planted secrets, for what a task under no_log printed, and for
// a key of ssh, in what was shown and in what burrow keeps: records, operations, logs. A
// guest's disks and seed are its own.
func (s *stack) keepsSecrets(t *testing.T, shown ...string) {
	t.Helper()
	roots := []string{s.temp, "/var/log", "/run/burrow"}
	entries, err := os.ReadDir(s.data)
	require.NoError(t, err)
	for _, e := range entries {
		if e.Name() != "pool" && e.Name() != "seeds" {
			roots = append(roots, filepath.Join(s.data, e.Name()))
		}
	}
	for _, kept := range []string{"temporal", "blobs", "etcd"} {
		require.NotEmpty(t, holding(t, "broken on purpose", filepath.Join(s.data, kept)), "what is looked for would be found in %s", kept)
	}
	for _, secret := range append(slices.Collect(maps.Values(plantedSecrets)), "plugh-of-no-log", "OPENSSH PRIVATE KEY") {
		require.Empty(t, holding(t, secret, roots...), secret)
		for _, text := range shown {
			require.NotContains(t, text, secret)
		}
	}
}

// configuredTwice runs the base that ships on a server that stands; the second run has
// nothing left to change.
func (s *stack) configuredTwice(t *testing.T, server string) {
	t.Helper()
	vars := filepath.Join(t.TempDir(), "vars.yaml")
	require.NoError(t, os.WriteFile(vars, []byte(`
base_timezone: Europe/Vienna
base_users:
  - {name: ada, sudo: true, ssh_keys: [ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA ada]}
`), 0o600))
	base := filepath.Join("..", "..", "playbook", "base.yaml")
	s.run("configure", server, "--playbook", base, "--extra-vars-file", vars)
	require.NotContains(t, s.run("logs", server), "changed=0")
	require.Contains(t, s.run("ssh", server, "--", "sudo", "-u", "ada", "sudo", "id", "-un"), "root")

	s.run("configure", server, "--playbook", base, "--extra-vars-file", vars)
	require.Contains(t, s.run("logs", server), "changed=0")
	require.Contains(t, s.run("ssh", server, "--", "readlink", "/etc/localtime"), "Europe/Vienna")
}
