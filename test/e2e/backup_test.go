package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"burrow.dev/burrow/internal/config"
	"burrow.dev/burrow/internal/etcdstate"
	"burrow.dev/burrow/internal/installation"
)

// TestALostInstallationComesBackFromItsBackup loses everything that burrow knows, but not
// the disks, and has the real workers go on with what was restored. It needs no guest.
func TestALostInstallationComesBackFromItsBackup(t *testing.T) {
	s := newStack(t, "--etcd-port", "12379")
	s.settled("network", "host-bridge")
	s.run("apply", "-f", filepath.Join("testdata", "guide", "net-and-volume.yaml"))
	network, _ := s.record("network", "db-net")
	volume, _ := s.record("volume", "data-1")
	require.FileExists(t, volume.Status.Volume.Path)
	run := s.describe("network/db-net").WorkflowExecution.RunID
	before := s.etcdKeys()
	file := filepath.Join(t.TempDir(), "backup")
	key := filepath.Join(t.TempDir(), "master.key")
	s.run("backup", file, "--data-dir", s.data)
	copied, err := os.ReadFile(filepath.Join(s.data, "master.key"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(key, copied, 0o600))
	s.run("down", "--data-dir", s.data)
	entries, err := os.ReadDir(s.data)
	require.NoError(t, err)
	for _, e := range entries {
		if e.Name() != "pool" && e.Name() != "log" { // disks are in no backup
			require.NoError(t, os.RemoveAll(filepath.Join(s.data, e.Name())))
		}
	}

	s.run("restore", file, "--master-key", key, "--data-dir", s.data)
	s.up = nil // the ports are known
	s.start()
	s.settled("network", "host-bridge")
	restored, ok := s.record("network", "db-net")
	require.True(t, ok)
	require.Equal(t, network.Metadata.UID, restored.Metadata.UID)
	require.Equal(t, network.Status, restored.Status)
	require.Subset(t, s.etcdKeys(), before)
	there := s.describe("network/db-net")
	require.Equal(t, run, there.WorkflowExecution.RunID)
	require.Equal(t, enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED, there.Status)
	s.run("delete", "volume/data-1", "network/db-net", "-y")
	require.NoFileExists(t, volume.Status.Volume.Path, "what was restored is worked on")

	t.Run("no worker starts on half a world", func(t *testing.T) {
		s.run("down", "--data-dir", s.data)
		conf := &installation.Configuration{Folder: installation.Folder(s.data), Ports: installation.Ports{Etcd: 12379}}
		etcd, err := conf.StartEtcd(t.Context(), filepath.Join(filepath.Dir(s.burrow), "burrow-devstack"))
		require.NoError(t, err)
		var cfg config.Worker
		text, err := os.ReadFile(filepath.Join(s.data, config.WorkerFile))
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(text, &cfg))
		store, err := etcdstate.Open(cfg.Etcd, etcdstate.Options{})
		require.NoError(t, err)
		_, err = store.BeginRestore(t.Context(), true, 0) // and no more: as if it were killed here
		require.NoError(t, errors.Join(err, store.Close()))
		require.NoError(t, etcd.Stop())
		code, out := s.code("up", "--detach", "--data-dir", s.data)
		require.Equal(t, 1, code)
		require.Contains(t, out, "run it again: burrow restore FILE")
		s.run("restore", file, "--replace", "--data-dir", s.data)
		s.start()
		s.settled("network", "db-net")
	})
}

// settled waits until a resource is there with nothing under way.
func (s *stack) settled(kind, name string) {
	s.t.Helper()
	s.eventually(kind+"/"+name+" settled", func() error {
		if rec, ok := s.record(kind, name); !ok || !rec.Status.Phase.Settled() {
			return fmt.Errorf("it is %q", rec.Status.Phase)
		}
		return nil
	})
}

func (s *stack) describe(id string) *client.WorkflowExecutionMetadata {
	s.t.Helper()
	c := s.temporal()
	described, err := c.DescribeWorkflow(s.t.Context(), id, "")
	require.NoError(s.t, err)
	return &described.WorkflowExecutionMetadata
}
