package qemuuser

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"burrow.dev/burrow/internal/errs"
)

func TestAFolderThatShutsQEMUOutIsNamedWithTheMend(t *testing.T) {
	u := User{Name: "libvirt-qemu", UID: "64055", Groups: []string{"109"}}
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

func TestTheUserThatQemuConfNamesCounts(t *testing.T) {
	conf := filepath.Join(t.TempDir(), "qemu.conf")
	for text, want := range map[string]string{
		"#user = \"libvirt-qemu\"\nuser = \"root\"\n": "root",
		"user=\"+0\"": "root", " user = \"nobody\"": "nobody",
	} {
		require.NoError(t, os.WriteFile(conf, []byte(text), 0o600))
		u, err := lookup(conf)
		require.NoError(t, err)
		require.Equal(t, want, u.Name)
	}
	require.NoError(t, os.WriteFile(conf, []byte(`user = "no-such-user"`), 0o600))
	_, err := lookup(conf)
	require.ErrorIs(t, err, errs.ErrNotFound)
	require.NoError(t, User{UID: rootUID}.CheckReach("/root/x"))
}
