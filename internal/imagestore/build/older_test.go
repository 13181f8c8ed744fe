package build

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestImagesOfOlderRecipesAreRemovedAndOthersStay(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"debian12-old.qcow2", "debian12-old.json", "debian12-new.qcow2", "debian13-old.qcow2", "mine.qcow2"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	b := builder{Options: Options{Dir: dir, Log: slog.New(slog.DiscardHandler)}, distro: Distro{Name: "debian12"}, hash: "new"}
	b.removeOlder()
	left, err := filepath.Glob(filepath.Join(dir, "*"))
	require.NoError(t, err)
	for i := range left {
		left[i] = filepath.Base(left[i])
	}
	require.Equal(t, []string{"debian12-new.qcow2", "debian13-old.qcow2", "mine.qcow2"}, left)
}
