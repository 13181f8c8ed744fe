package keylock

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestAKeyIsLockedByOneAtATimeAndForgotten(t *testing.T) {
	var k Locks
	first, err := k.Lock(t.Context(), "a")
	require.NoError(t, err)
	other, err := k.Lock(t.Context(), "b")
	require.NoError(t, err, "another key is free")
	other()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = k.Lock(ctx, "a")
	require.ErrorIs(t, err, context.Canceled)
	first()
	again, err := k.Lock(t.Context(), "a")
	require.NoError(t, err)
	again()
	free, err := k.Lock(t.Context(), "")
	require.NoError(t, err)
	free()
	require.Empty(t, k.held)
}
