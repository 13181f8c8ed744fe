package build_test

import (
	"encoding/json"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"burrow.dev/burrow/internal/imagestore/build"
)

// cacheDir is where hosts and the end-to-end tests keep built images; minutes are saved
// by building once.
const cacheDir = "/var/cache/burrow/images"

func TestBuildGivesABootableDiskAndKeepsIt(t *testing.T) {
	if testing.Short() || os.Geteuid() != 0 {
		t.Skip("builds an image: needs root and minutes")
	}
	o := build.Options{Dir: cacheDir, Log: slog.New(slog.NewTextHandler(t.Output(), nil)), Stage: func(s string) { t.Log(s) }}
	img, err := build.Build(t.Context(), o, "debian12")
	require.NoError(t, err)

	again, err := build.Build(t.Context(), o, "debian12")
	require.NoError(t, err)
	require.Equal(t, img.BuiltAt, again.BuiltAt, "the second build is the first one's image")

	info := qemuImgInfo(t, img.Path)
	require.Equal(t, "qcow2", info.Format)
	require.EqualValues(t, img.VirtualBytes, info.VirtualSize)
	require.LessOrEqual(t, img.SizeBytes, int64(400<<20))
	require.NoError(t, exec.CommandContext(t.Context(), "qemu-img", "check", "-q", img.Path).Run())

	left, err := filepath.Glob(filepath.Join(cacheDir, ".build-*"))
	require.NoError(t, err)
	require.Empty(t, left, "work folders are gone")
}

type qemuInfo struct {
	Format      string `json:"format"`
	VirtualSize int64  `json:"virtual-size"`
}

func qemuImgInfo(t *testing.T, path string) (info qemuInfo) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "qemu-img", "info", "--output=json", path).Output()
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(out, &info))
	return info
}
