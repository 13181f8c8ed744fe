package galaxy

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func installed(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, "roles/a/tasks/main.yml", "[]\n", 0o600)
	write(t, dir, "roles/a/files/run.sh", "#!/bin/sh\n", 0o6755)
	require.NoError(t, os.Symlink("../tasks/main.yml", filepath.Join(dir, "roles/a/files/link")))
	return dir
}

func write(t *testing.T, dir, name, text string, mode os.FileMode) {
	t.Helper()
	path := filepath.Join(dir, name)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, []byte(text), mode))
	require.NoError(t, os.Chmod(path, mode))
}

func cache(t *testing.T) Cache {
	return Cache{Dir: filepath.Join(t.TempDir(), "galaxy"), GID: os.Getegid()}
}

func TestWhatIsPublishedIsThereToReadAndNotToChange(t *testing.T) {
	c := cache(t)
	_, ok := c.Open("k1")
	require.False(t, ok)
	defer syscall.Umask(syscall.Umask(0o077))
	dir, err := c.Publish("k1", installed(t), os.Geteuid())
	require.NoError(t, err)
	found, ok := c.Open("k1")
	require.True(t, ok)
	require.Equal(t, dir, found)
	for name, mode := range map[string]os.FileMode{
		"": 0o755 | os.ModeDir, "roles/a": 0o755 | os.ModeDir, "roles/a/tasks/main.yml": 0o644, "roles/a/files/run.sh": 0o755,
	} {
		info, err := os.Lstat(filepath.Join(dir, name))
		require.NoError(t, err)
		require.Equal(t, mode, info.Mode(), name)
	}
	text, err := os.ReadFile(filepath.Join(dir, "roles/a/files/link"))
	require.NoError(t, err)
	require.Equal(t, "[]\n", string(text))
	again, err := c.Publish("k1", installed(t), os.Geteuid())
	require.NoError(t, err, "another worker was faster")
	require.Equal(t, dir, again)
	require.Equal(t, []string{"k1"}, names(t, c.Dir))
	info, err := os.Stat(c.Dir)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o750), info.Mode().Perm())
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	var all []string
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

func TestWhatNoRoleHasIsNotPublished(t *testing.T) {
	for name, spoil := range map[string]func(dir string) error{
		"a pipe":               func(dir string) error { return syscall.Mkfifo(filepath.Join(dir, "roles/pipe"), 0o666) },
		"a symlink to outside": func(dir string) error { return os.Symlink("../../../etc/passwd", filepath.Join(dir, "roles/out")) },
		"a symlink to outside, by another": func(dir string) error {
			return errors.Join(os.Symlink(".", filepath.Join(dir, "roles/b")), os.Symlink("b/../../x", filepath.Join(dir, "roles/out")))
		},
		"an absolute symlink": func(dir string) error { return os.Symlink("/etc/passwd", filepath.Join(dir, "roles/out")) },
	} {
		t.Run(name, func(t *testing.T) {
			c, dir := cache(t), installed(t)
			require.NoError(t, spoil(dir))
			_, err := c.Publish("k1", dir, os.Geteuid())
			require.ErrorIs(t, err, ErrUnsafe)
			_, ok := c.Open("k1")
			require.False(t, ok)
			require.Empty(t, names(t, c.Dir))
		})
	}
	c := cache(t)
	_, err := c.Publish("k1", installed(t), os.Geteuid()+1)
	require.ErrorIs(t, err, ErrUnsafe, "a hard link to somebody else's file")
	require.Empty(t, names(t, c.Dir))
}

func TestWhatAKilledWorkerLeftIsNotTakenAsWhole(t *testing.T) {
	c := cache(t)
	require.NoError(t, c.Clean(), "there is none yet")
	_, err := c.Publish("k1", installed(t), os.Geteuid())
	require.NoError(t, err)
	require.NoError(t, os.Mkdir(filepath.Join(c.Dir, unfinished+"7"), 0o700))
	require.NoError(t, os.Mkdir(filepath.Join(c.Dir, discarded+"k0"), 0o700))
	require.NoError(t, c.Clean())
	require.Equal(t, []string{"k1"}, names(t, c.Dir))
}

func TestWhatNoRunHasUsedForLongGoes(t *testing.T) {
	c := cache(t)
	for _, key := range []string{"old", "used"} {
		dir, err := c.Publish(key, installed(t), os.Geteuid())
		require.NoError(t, err)
		long := time.Now().Add(-keepFor - time.Hour)
		require.NoError(t, os.Chtimes(dir, long, long))
	}
	_, ok := c.Open("used")
	require.True(t, ok)
	_, err := c.Publish("new", installed(t), os.Geteuid())
	require.NoError(t, err)
	require.Equal(t, []string{"new", "used"}, names(t, c.Dir))
}
