package build

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestListsOfPackagesDoNotLookFresh(t *testing.T) {
	root := t.TempDir()
	for _, dir := range []string{"etc/apt/sources.list.d", "var/lib/apt/lists", "var/lib/dbus"} {
		require.NoError(t, os.MkdirAll(filepath.Join(root, dir), 0o755))
	}
	require.NoError(t, finishRootfs(root, Mirrors{Suite: "bookworm"}))
	lists, err := os.Stat(filepath.Join(root, "var/lib/apt/lists"))
	require.NoError(t, err)
	require.Equal(t, time.Unix(0, 0), lists.ModTime())
}
