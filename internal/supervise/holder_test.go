package supervise_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/supervise"
)

func TestWhoHoldsADataDirectoryIsCalledByItsNameAndOnlyBurrowUpIsEnded(t *testing.T) {
	dir := t.TempDir()
	restore := &supervise.Supervisor{Dir: dir, Name: "burrow restore"}
	require.NoError(t, restore.Acquire())
	t.Cleanup(func() { require.NoError(t, restore.Close()) })

	err := (&supervise.Supervisor{Dir: dir}).Acquire()
	require.ErrorIs(t, err, errs.ErrBusy)
	require.ErrorContains(t, err, "burrow restore runs as pid")
	require.NotContains(t, err.Error(), "burrow down", "it would leave half a world")

	ended, err := supervise.Down(t.Context(), dir, func(string) time.Duration { return patience })
	require.ErrorIs(t, err, errs.ErrBusy)
	require.ErrorContains(t, err, "burrow restore runs as pid")
	require.Empty(t, ended)
}
