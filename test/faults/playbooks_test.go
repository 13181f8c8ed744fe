package faults

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/internal/blob"
	"burrow.dev/burrow/internal/bundle"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
	"burrow.dev/burrow/workflows"
)

const worldPlayed = "a running server with a playbook"

// witnessed is a playbook that says when two runs of it are there at once. The lock is the
// kernel's: it goes with the processes of a run that is killed.
const witnessed = `- hosts: all
  gather_facts: false
  tasks:
    - name: Be the only one
      delegate_to: localhost
      ansible.builtin.shell: |
        exec 9>>%[1]s/{{ inventory_hostname }}.lock
        flock -n 9 || { touch %[1]s/{{ inventory_hostname }}.twice; exit 1; }
        sleep 0.5
        echo ran >> %[1]s/{{ inventory_hostname }}.ran
`

// pack makes the playbook's bundle, as an apply does.
func (s *site) pack() {
	s.t.Helper()
	s.witness = filepath.Join(string(s.conf.Folder), "witness")
	require.NoError(s.t, os.Mkdir(s.witness, 0o777))
	require.NoError(s.t, os.Chmod(s.witness, 0o777)) // the playbook's user writes into it
	folder := s.t.TempDir()
	require.NoError(s.t, writeFile(filepath.Join(folder, "site.yaml"), fmt.Sprintf(witnessed, s.witness)))
	archive, err := os.Create(filepath.Join(s.t.TempDir(), "bundle"))
	require.NoError(s.t, err)
	defer archive.Close()
	s.bundle, _, err = bundle.Pack(folder, archive)
	require.NoError(s.t, err)
	_, err = archive.Seek(0, 0)
	require.NoError(s.t, err)
	key, err := blob.BundleKey(s.bundle)
	require.NoError(s.t, err)
	store, err := blob.Open(s.t.Context(), s.conf.Worker.Blobs)
	require.NoError(s.t, err)
	defer store.Close()
	require.NoError(s.t, store.Put(s.t.Context(), key, archive))
}

// oneRun checks what the playbook saw.
func (c *subject) oneRun(ran bool) error {
	_, err := os.Stat(filepath.Join(c.witness, c.name+".twice"))
	if !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("two runs of its playbook were there at once (%w)", err)
	}
	if _, err := os.Stat(filepath.Join(c.witness, c.name+".ran")); ran && err != nil {
		return fmt.Errorf("its playbook has not run: %w", err)
	}
	return nil
}

// playedIn is provisionIn with the playbook.
func (c *subject) playedIn(ctx context.Context) (workflows.ProvisionServerIn, error) {
	in, err := c.provisionIn(ctx)
	in.Bundle = c.bundle
	in.Spec.Ansible = &manifest.Ansible{Playbook: []string{"site.yaml"}, OnFailure: manifest.OnFailureRollback}
	if c.onFailure != "" {
		in.Spec.Ansible.OnFailure = c.onFailure
	}
	return in, err
}

func provisionAndPlay(ctx context.Context, c *subject) (client.WorkflowRun, error) {
	in, err := c.playedIn(ctx)
	if err != nil {
		return nil, err
	}
	return c.begin(ctx, c.ref(), workflows.NameProvisionServer, in)
}

// playing are operations that run a playbook. It works on the worker's machine only: the
// guests of these tests have no operating system.
func playing() []operation {
	return []operation{{
		name: "provision a server with a playbook", kind: manifest.KindServer, ends: worldPlayed, start: provisionAndPlay, builds: true, holds: true, plays: true,
		steps: []place{
			{step: "check playbook", activity: activities.AnsibleCheck},
			{step: "run playbook", activity: activities.AnsibleRun},
			atEnd,
		},
		undos:  []place{{step: "undo: stop playbook", activity: activities.AnsibleReap}},
		breaks: breaking{activities.AnsibleRun, order{Deed: failAfter, Class: string(errs.Permanent), Times: always}},
	}}
}
