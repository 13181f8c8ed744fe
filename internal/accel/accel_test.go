package accel

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/qemuuser"
)

func TestTheBootSectorCountsAndLeavesUnderTCG(t *testing.T) {
	// The limits are a user's; a machine that is busy with other tests may need some tries.
	require.Eventually(t, func() bool {
		took, err := boot(t.Context(), TCG)
		t.Log(took, err)
		return err == nil && took > 0
	}, time.Minute, time.Millisecond)
	require.Len(t, bootSector(), sectorLen)
}

func TestWhateverKVMIsHereTheAnswerComesInTimeWithAReason(t *testing.T) {
	began := time.Now()
	r := Detect(t.Context(), "")
	require.Contains(t, []string{KVM, TCG}, r.Accelerator)
	require.NotEmpty(t, r.Reason)
	require.Less(t, time.Since(began), 2*(firstWait+lastWait))
	t.Log(r)
}

func TestAForcedAcceleratorIsObeyed(t *testing.T) {
	for _, forced := range []string{KVM, TCG} {
		require.Equal(t, forced, Detect(t.Context(), forced).Accelerator)
	}
}

func TestAnUnusableQEMUIsToldWithItsOwnWords(t *testing.T) {
	_, err := boot(t.Context(), "abacus")
	require.ErrorContains(t, err, "abacus")
}

func TestACancelledTestLeavesNoQEMU(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := boot(ctx, TCG)
	require.Error(t, err)
}

func TestANodeThatQEMUsUserCannotOpenIsMendedOnce(t *testing.T) {
	if _, err := qemuuser.Lookup(); err != nil {
		t.Skip("libvirt is not installed")
	}
	node := filepath.Join(t.TempDir(), "kvm")
	require.NoError(t, checkPermissions(node), "no node, no problem")
	require.NoError(t, os.WriteFile(node, nil, 0o600))

	err := checkPermissions(node)
	require.Equal(t, errs.Operator, errs.ClassOf(err))
	require.ErrorContains(t, err, "chgrp kvm")

	require.NoError(t, fixPermissions(node, slog.New(slog.DiscardHandler)))
	info, err := os.Stat(node)
	require.NoError(t, err)
	require.EqualValues(t, kvmMode, info.Mode().Perm())
	require.NoError(t, fixPermissions(node, slog.New(slog.DiscardHandler)))
}
