package etcdstate

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"burrow.dev/burrow/internal/capacity"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
)

func (s *Store) phaseOf(t *testing.T, host string) manifest.Phase {
	t.Helper()
	rec, err := s.Get(t.Context(), manifest.KindHost, host)
	require.NoError(t, err)
	return rec.Status.Phase
}

func TestAHostIsDeclaredLostOnlyWhileItsWorkerDoesNotLive(t *testing.T) {
	t.Parallel()
	s := newTestStore(t)
	mark := LostHost{Since: time.Unix(1_800_000_000, 0).UTC(), By: "ops"}
	_, err := s.DeclareLost(t.Context(), "kvm1", mark)
	require.ErrorIs(t, err, errs.ErrNotFound)
	require.NoError(t, s.RegisterHost(t.Context(), "kvm1", nil, capacity.Spec{CPU: 4}))

	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { _ = s.KeepAlive(ctx, "kvm1", func() {}) })
	require.Eventually(t, func() bool { return hostAlive(t, s, "kvm1") }, patience, 10*time.Millisecond)
	_, err = s.DeclareLost(t.Context(), "kvm1", mark)
	require.ErrorIs(t, err, errs.ErrBusy)
	require.Equal(t, errs.Permanent, errs.ClassOf(err))
	cancel()
	wg.Wait()

	got, err := s.DeclareLost(t.Context(), "kvm1", mark)
	require.NoError(t, err)
	require.Equal(t, mark, got)
	got, err = s.DeclareLost(t.Context(), "kvm1", LostHost{Since: time.Now(), By: "another"})
	require.NoError(t, err)
	require.Equal(t, mark, got, "the first mark stays")
	require.Equal(t, manifest.PhaseLost, s.phaseOf(t, "kvm1"))
	require.NoError(t, s.RegisterHost(t.Context(), "kvm1", nil, capacity.Spec{CPU: 4}))
	require.Equal(t, manifest.PhaseLost, s.phaseOf(t, "kvm1"), "to register takes no mark off")
	require.ErrorIs(t, s.KeepAlive(t.Context(), "kvm1", func() {}), ErrHostLost)
	require.False(t, hostAlive(t, s, "kvm1"))
}

func TestAMarkGoesOnlyWhenNothingIsOwedAndDebtsAreMadeOnlyWhileItIsThere(t *testing.T) {
	t.Parallel()
	s := newTestStore(t)
	require.NoError(t, s.RegisterHost(t.Context(), "kvm1", nil, capacity.Spec{CPU: 4}))
	debt := func(what string) Debt {
		return Debt{Host: "kvm1", Object: "server/db", UID: "uid-1", What: what, Activity: "domain.Remove", Input: []byte(`{"a":1}`)}
	}
	owed, err := s.Owe(t.Context(), debt("too early"))
	require.NoError(t, err)
	require.False(t, owed, "a host that is not lost does it itself")
	_, err = s.DeclareLost(t.Context(), "kvm1", LostHost{Since: time.Now()})
	require.NoError(t, err)

	var wg sync.WaitGroup
	for range 8 { // several operations at once
		wg.Go(func() {
			owed, err := s.Owe(t.Context(), debt("remove"))
			require.NoError(t, err)
			require.True(t, owed)
		})
	}
	wg.Wait()
	owed, err = s.Owe(t.Context(), debt("last"))
	require.NoError(t, err)
	require.True(t, owed)
	debts, err := s.Debts(t.Context(), "kvm1")
	require.NoError(t, err)
	require.Len(t, debts, 9)
	require.Equal(t, "last", debts[8].What, "in the order in which they were made")
	require.Equal(t, "server/db: last", debts[8].String())
	require.JSONEq(t, `{"a":1}`, string(debts[8].Input))
	owing, err := s.Owing(t.Context())
	require.NoError(t, err)
	require.Equal(t, map[string]string{"uid-1": "kvm1"}, owing)

	require.NoError(t, s.NoteDeleted(t.Context(), manifest.KindServer, "db", "uid-1"))
	require.NoError(t, s.ForgetDeleted(t.Context(), time.Now().Add(2*DeletedKept)))
	deleted, err := s.Deleted(t.Context())
	require.NoError(t, err)
	require.Contains(t, deleted, "uid-1", "while something is owed, that it was deleted is not forgotten")

	for _, d := range debts {
		found, err := s.FoundAgain(t.Context(), "kvm1")
		require.NoError(t, err)
		require.False(t, found)
		require.NoError(t, s.PayDebt(t.Context(), d))
	}
	found, err := s.FoundAgain(t.Context(), "kvm1")
	require.NoError(t, err)
	require.True(t, found)
	require.Equal(t, manifest.PhaseUnknown, s.phaseOf(t, "kvm1"))
	owed, err = s.Owe(t.Context(), debt("too late"))
	require.NoError(t, err)
	require.False(t, owed)
	lost, err := s.LostNames(t.Context())
	require.NoError(t, err)
	require.Empty(t, lost)
}
