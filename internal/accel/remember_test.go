package accel

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAResultIsKeptForTheBootItWasFoundIn(t *testing.T) {
	boot, err := os.ReadFile(bootIDFile)
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "accelerator.json")
	keep := func(id string) {
		b, err := json.Marshal(remembered{id, Result{KVM, "kept"}})
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(file, b, 0o600))
	}
	keep(strings.TrimSpace(string(boot)))
	require.Equal(t, Result{KVM, "kept"}, DetectOnce(t.Context(), "", file))
	require.Equal(t, TCG, DetectOnce(t.Context(), TCG, file).Accelerator, "what is forced is obeyed")

	keep("another boot")
	require.NotEqual(t, "kept", DetectOnce(t.Context(), "", file).Reason)
	require.NotEqual(t, "kept", DetectOnce(t.Context(), "", file).Reason, "the new result is kept")
}
