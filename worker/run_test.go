package worker

import (
	"testing"

	"github.com/stretchr/testify/require"

	"burrow.dev/burrow/internal/errs"
)

func TestAWorkerDoesNotStartOnHalfAWorld(t *testing.T) {
	p := hostWith(t, "running").parts
	require.NoError(t, p.awaitWorld(t.Context()))
	restore, err := p.store.BeginRestore(t.Context(), false, 0)
	require.NoError(t, err)
	err = p.awaitWorld(t.Context())
	require.ErrorIs(t, err, errs.ErrBusy)
	require.ErrorContains(t, err, "burrow restore FILE")
	require.NoError(t, restore.Finish(t.Context()))
	require.NoError(t, p.awaitWorld(t.Context()))
}
