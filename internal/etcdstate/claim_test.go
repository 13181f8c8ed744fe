package etcdstate

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"burrow.dev/burrow/internal/errs"
)

func TestClaimsAreAllOrNoneAndNameTheHolder(t *testing.T) {
	s := newTestStore(t)
	ctx := t.Context()
	require.NoError(t, s.Claim(ctx, "playbook/one", "server/a", "server/b"))
	require.NoError(t, s.Claim(ctx, "playbook/one", "server/b", "server/c"), "its own stay its own")
	err := s.Claim(ctx, "playbook/two", "server/d", "server/b")
	require.ErrorIs(t, err, errs.ErrBusy)
	require.Equal(t, errs.Permanent, errs.ClassOf(err))
	var busy *BusyError
	require.ErrorAs(t, err, &busy)
	require.Equal(t, "server/b", busy.Key)
	require.Equal(t, "playbook/one", busy.Holder)
	require.ErrorContains(t, err, "server/b: claim: busy: claimed by playbook/one, started "+busy.Since.Format(time.RFC3339)+"; follow it: burrow watch playbook/one")
	require.NoError(t, s.Claim(ctx, "playbook/three", "server/d"), "none was taken")

	require.NoError(t, s.Unclaim(ctx, "playbook/two", "server/b"), "not its own")
	require.ErrorIs(t, s.Claim(ctx, "playbook/two", "server/b"), errs.ErrBusy)
	require.NoError(t, s.Unclaim(ctx, "playbook/one", "server/a", "server/b", "server/c"))
	require.NoError(t, s.Claim(ctx, "playbook/two", "server/b"))
}

func TestOneOfManyClaimersWins(t *testing.T) {
	s := newTestStore(t)
	var won atomic.Int64
	var group errgroup.Group
	for n := range 16 {
		group.Go(func() error {
			err := s.Claim(t.Context(), fmt.Sprint(n), "server/a", "server/b")
			if err == nil {
				won.Add(1)
			}
			return nil
		})
	}
	require.NoError(t, group.Wait())
	require.Equal(t, int64(1), won.Load())
}

func TestExactlyOneLastReferenceIsSeen(t *testing.T) {
	s := newTestStore(t)
	for n := range 8 {
		for range 2 {
			require.NoError(t, s.AddReference(t.Context(), "net", "kvm1", fmt.Sprint(n)))
		}
	}
	require.NoError(t, s.AddReference(t.Context(), "net", "kvm2", "x"))
	refs, err := s.References(t.Context(), "net", "kvm1")
	require.NoError(t, err)
	require.Len(t, refs, 8)
	all, err := s.References(t.Context(), "net", "")
	require.NoError(t, err)
	require.Len(t, all, 9)
	var last atomic.Int64
	var group errgroup.Group
	for n := range 8 {
		group.Go(func() error {
			remaining, err := s.DropReference(t.Context(), "net", "kvm1", fmt.Sprint(n))
			if remaining == 0 {
				last.Add(1)
			}
			return err
		})
	}
	require.NoError(t, group.Wait())
	require.Equal(t, int64(1), last.Load())
	remaining, err := s.DropReference(t.Context(), "net", "kvm1", "never")
	require.NoError(t, err)
	require.Zero(t, remaining)
}
