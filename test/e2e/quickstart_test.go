package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"burrow.dev/burrow/manifest"
)

// TestTheQuickstartEndsWithADatabaseOnItsDataVolume runs the README's example, first with
// a playbook that fails: the server is held, mended by a retry with the edited folder, and
// not rebuilt.
func TestTheQuickstartEndsWithADatabaseOnItsDataVolume(t *testing.T) {
	if testing.Short() {
		t.Skip("boots a guest and installs a database")
	}
	s := newStack(t)
	s.image("debian12")
	good := filepath.Join("..", "..", "examples", "quickstart")
	broken := t.TempDir()
	require.NoError(t, os.CopyFS(broken, os.DirFS(good)))
	require.NoError(t, os.WriteFile(filepath.Join(broken, "playbook", "mysql-setup.yaml"), []byte(`
- name: Set up the database
  hosts: db
  gather_facts: false
  tasks:
    - name: Fail on purpose
      ansible.builtin.fail:
        msg: this playbook is broken on purpose
`), 0o600))

	code, out := s.code("apply", "-f", broken)
	require.Equal(t, 6, code, "held")
	require.Contains(t, out, "Fail on purpose")
	held, ok := s.record("server", "db")
	require.True(t, ok)
	require.Equal(t, manifest.PhaseHeld, held.Status.Phase)
	require.Contains(t, s.run("describe", "server", "db"), "this playbook is broken on purpose")

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
