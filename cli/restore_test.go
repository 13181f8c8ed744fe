package cli

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestWhatIsNoBackupIsRefusedAtOnce(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	require.NoError(t, unix.Mkfifo(pipe, 0o600))
	for _, c := range []struct{ command, path, want string }{
		{"restore", pipe, "plain file"}, // nobody writes into it: opening it would wait for ever
		{"restore", filepath.Join(dir, "none"), "next: name a file"},
		{"restore", "", "name the backup"},
		{"backup", "", "name the file to write"},
	} {
		var out, errOut strings.Builder
		code := run(t.Context(), []string{"burrow", c.command, c.path, "--data-dir", filepath.Join(dir, "data")}, strings.NewReader(""), &out, &errOut)
		require.Equal(t, ExitOther, code, c)
		require.Contains(t, errOut.String(), c.want, c)
	}
}
