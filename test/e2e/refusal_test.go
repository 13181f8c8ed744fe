package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestBadManifestsAreRefusedWithTheirLineAndLeaveNothing applies every invalid case.
func TestBadManifestsAreRefusedWithTheirLineAndLeaveNothing(t *testing.T) {
	s := newStack(t)
	s.eventually("host-bridge declared", func() error {
		if rec, ok := s.record("network", "host-bridge"); !ok || !rec.Status.Phase.Settled() {
			return os.ErrNotExist
		}
		return nil
	})
	before := s.census()
	files, err := filepath.Glob(filepath.Join("..", "..", "manifest", "testdata", "cases", "invalid", "*.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	line := regexp.MustCompile(`line (\d+)`)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			code, out := s.code("apply", "-f", file)
			require.Equal(t, 2, code, out)
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Contains(t, out, filepath.Base(file))
			for _, m := range line.FindAllSubmatch(text, -1) {
				require.Contains(t, out, filepath.Base(file)+":"+string(m[1])+":")
			}
		})
	}
	require.Equal(t, before, s.census())
}
