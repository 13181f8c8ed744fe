package qemuuser_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/qemuuser"
)

func TestAFolderThatShutsQEMUOutIsNamedWithTheMend(t *testing.T) {
	u := qemuuser.User{Name: "libvirt-qemu", UID: "64055", Groups: []string{"109"}}
	base, err := os.MkdirTemp("/tmp", "reach")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(base) })
	require.NoError(t, os.Chmod(base, 0o755))
	shut := filepath.Join(base, "shut")
	require.NoError(t, os.MkdirAll(filepath.Join(shut, "open"), 0o755))
	disk := filepath.Join(shut, "open", "disk.qcow2")
	require.NoError(t, u.CheckReach(disk))

	require.NoError(t, os.Chmod(shut, 0o700))
	err = u.CheckReach(disk)
	require.Equal(t, errs.Operator, errs.ClassOf(err))
	require.ErrorContains(t, err, "chmod o+x "+shut)

	require.NoError(t, os.Chown(shut, 0, 109))
	require.NoError(t, os.Chmod(shut, 0o710))
	require.NoError(t, u.CheckReach(disk), "its group may pass")
	require.NoError(t, os.Chown(shut, 64055, 0))
	require.NoError(t, os.Chmod(shut, 0o077))
	require.Error(t, u.CheckReach(disk), "the owner's bits count for the owner")
}
