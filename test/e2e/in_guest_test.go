package e2e

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"burrow.dev/burrow/manifest"
)

const inGuestServer = `apiVersion: v1
kind: Server
metadata: {name: self, labels: {role: self}}
spec:
    cpu: 2
    memory: 1024
    mmImage: debian12
    cloudInit:
        userData: |
            #cloud-config
            write_files:
                - {path: /etc/of-the-user, content: hello}
            runcmd:
                - [cp, /etc/of-the-user, /etc/run-by-the-user]
    ansible:
        remotePlaybook: playbook/site.yaml
        retries: 0
        extraVars: {greeting: "it's me"}
`

// inGuestPlay needs what the user's own cloud-init brings: both are in one seed.
const inGuestPlay = `- hosts: label_role_self
  tasks:
    - name: The user's own cloud-init has run
      ansible.builtin.command: cat /etc/run-by-the-user
      changed_when: false
    - name: Greet
      ansible.builtin.copy: {content: "{{ greeting }} on {{ burrow_networks[0] }}, {{ ansible_facts.hostname }}", dest: /etc/greeting}
`

// TestAPlaybookInTheGuestFailsIsMendedAndEndsWell builds a server whose image has no Ansible:
// the guest gets it, runs the playbook of its seed, and fails; held, it is mended by a retry
// with the edited folder.
func TestAPlaybookInTheGuestFailsIsMendedAndEndsWell(t *testing.T) {
	longForm(t, "installs Ansible in a guest")
	s := newStack(t)
	s.image("debian12")
	dir := t.TempDir()
	write := func(name, text string) {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	write("self.yaml", inGuestServer)
	write("playbook/site.yaml", inGuestPlay+"    - name: Fail on purpose\n      ansible.builtin.fail: {msg: broken on purpose}\n")

	code, out := s.code("apply", "-f", filepath.Join(dir, "self.yaml"))
	require.Equal(t, 6, code, "held: %s", out)
	require.Contains(t, out, `task "Fail on purpose" on self: broken on purpose`)
	held, ok := s.record("server", "self")
	require.True(t, ok)
	require.Equal(t, manifest.PhaseHeld, held.Status.Phase)
	require.Contains(t, s.run("describe", "server", "self"), "broken on purpose")
	require.Contains(t, s.run("logs", "self"), "TASK [Fail on purpose]")

	write("playbook/site.yaml", inGuestPlay)
	s.run("retry", "server/self", "-f", filepath.Join(dir, "playbook"))
	rec := s.running("self")
	require.Equal(t, held.Metadata.UID, rec.Metadata.UID, "not built again")
	require.Equal(t, 0, rec.Status.Playbook.Recap["self"].Failed)
	require.Contains(t, s.run("ssh", "self", "--", "sudo", "cat", "/etc/greeting"), "it's me on host-bridge, self")
	require.Contains(t, s.run("history", "server", "self", "--step", "playbook"), "site.yaml")
	s.run("delete", "server", "self", "-y")
}
