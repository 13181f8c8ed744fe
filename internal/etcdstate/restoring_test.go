package etcdstate

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"burrow.dev/burrow/internal/devstacktest"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
)

// allKept gives what a backup of s would hold.
func allKept(t *testing.T, s *Store) []Kept {
	t.Helper()
	var all []Kept
	_, err := s.EachKept(t.Context(), 0, func(k Kept) error { all = append(all, k); return nil })
	require.NoError(t, err)
	return all
}

func TestABackupHoldsWhatIsTrueAndNotWhoLives(t *testing.T) {
	s := newTestStore(t)
	lease, err := s.client.Grant(t.Context(), 60)
	require.NoError(t, err)
	for key, opts := range map[string][]clientv3.OpOption{
		"servers/db": nil, "ipam/net-1/a/00": nil, "ipam/net-1/q/01": {clientv3.WithLease(lease.ID)},
		"alive/kvm1": {clientv3.WithLease(lease.ID)}, "locks/ipam/net-1/1": {clientv3.WithLease(lease.ID)},
	} {
		_, err := s.client.Put(t.Context(), s.Key(key), "{}", opts...)
		require.NoError(t, err)
	}
	var keys []string
	for _, k := range allKept(t, s) {
		keys = append(keys, fmt.Sprint(k.Key, k.Quarantined))
	}
	require.Equal(t, []string{"ipam/net-1/a/00false", "ipam/net-1/q/01true", "servers/dbfalse"}, keys)
}

func TestRestoreIsRefusedOverAWorldAndWhileSomebodyWorks(t *testing.T) {
	s := openStore(t, devstacktest.Etcd(t), Options{AliveTTL: time.Second, LockTTL: time.Second})
	_, err := s.Create(t.Context(), server("db", "u1"))
	require.NoError(t, err)
	_, err = s.BeginRestore(t.Context(), false, 0)
	require.ErrorIs(t, err, errs.ErrExists)
	require.ErrorContains(t, err, "--replace")
	require.NoError(t, s.Interrupted(t.Context()), "nothing was begun")

	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.KeepAlive(ctx, "kvm1", func() {}) }()
	require.Eventually(t, func() bool { alive, err := s.AliveHosts(t.Context()); return err == nil && len(alive) == 1 }, patience, 10*time.Millisecond)
	_, err = s.BeginRestore(t.Context(), true, 0)
	require.ErrorIs(t, err, errs.ErrBusy)
	require.ErrorContains(t, err, "alive/kvm1")
	cancel()
	require.NoError(t, <-ended)
	_, err = s.Get(t.Context(), manifest.KindServer, "db")
	require.NoError(t, err, "nothing was touched")
}

func TestNothingOfTheOldWorldRemainsAndTransactionsStayWhole(t *testing.T) {
	s := newTestStore(t)
	_, err := s.client.Put(t.Context(), "/other/key", "stays")
	require.NoError(t, err)
	for i := range 300 {
		_, err := s.client.Txn(t.Context()).Then(clientv3.OpPut(s.Key("a", fmt.Sprint(i)), "1"), clientv3.OpPut(s.Key("o", fmt.Sprint(i)), "1")).Commit()
		require.NoError(t, err)
	}
	before := allKept(t, s)
	_, err = s.client.Put(t.Context(), s.Key("zzz"), "later")
	require.NoError(t, err)
	_, err = s.client.Put(t.Context(), s.Key("aaa"), "later")
	require.NoError(t, err)

	r, err := s.BeginRestore(t.Context(), true, time.Minute)
	require.NoError(t, err)
	require.Empty(t, without(allKept(t, s), restoringKey))
	for _, k := range before {
		r.Note(k)
	}
	for i := 0; i < 300; i++ {
		require.NoError(t, r.Put(t.Context(), []Kept{before[i], before[i+300]}))
	}
	require.ErrorIs(t, s.Interrupted(t.Context()), errs.ErrBusy, "until it is finished")
	require.NoError(t, r.Finish(t.Context()))
	require.NoError(t, s.Interrupted(t.Context()))
	after := allKept(t, s)
	require.Len(t, after, len(before))
	for i, k := range after {
		require.Equal(t, before[i].Key, k.Key)
		require.Equal(t, before[i].Value, k.Value)
	}
	other, err := s.client.Get(t.Context(), "/other/key")
	require.NoError(t, err)
	require.Len(t, other.Kvs, 1)
}

func without(kept []Kept, key string) []Kept {
	var out []Kept
	for _, k := range kept {
		if k.Key != key {
			out = append(out, k)
		}
	}
	return out
}

func TestASecondRestoreTakesOverAndTheFirstCanWriteNoMore(t *testing.T) {
	s := newTestStore(t)
	first, err := s.BeginRestore(t.Context(), false, 0)
	require.NoError(t, err)
	require.NoError(t, first.Put(t.Context(), []Kept{{Key: "servers/old", Value: []byte("{}")}}))
	second, err := s.BeginRestore(t.Context(), false, 0)
	require.NoError(t, err, "without --replace: what is there is nobody's world")
	require.Empty(t, without(allKept(t, s), restoringKey))
	require.ErrorIs(t, first.Put(t.Context(), []Kept{{Key: "servers/old", Value: []byte("{}")}}), errs.ErrBusy)
	require.ErrorIs(t, first.Finish(t.Context()), errs.ErrBusy)
	require.NoError(t, second.Finish(t.Context()))
}

func TestAWorldThatSomebodyElseWroteIntoIsNotGivenFree(t *testing.T) {
	s := newTestStore(t)
	r, err := s.BeginRestore(t.Context(), false, 0)
	require.NoError(t, err)
	_, err = s.Create(t.Context(), server("stray", "u1"))
	require.NoError(t, err)
	require.ErrorIs(t, r.Finish(t.Context()), errs.ErrConflict)
	require.ErrorIs(t, s.Interrupted(t.Context()), errs.ErrBusy)
}

func TestARestoreThatBeginsIsToldToWhoeverWaits(t *testing.T) {
	s := newTestStore(t)
	told := make(chan error, 1)
	go func() { told <- s.AwaitRestore(t.Context()) }()
	r, err := s.BeginRestore(t.Context(), false, 0)
	require.NoError(t, err)
	select {
	case err := <-told:
		require.ErrorIs(t, err, errs.ErrBusy)
		require.ErrorContains(t, err, "burrow restore")
	case <-time.After(patience):
		t.Fatal("not told")
	}
	require.NoError(t, r.Finish(t.Context()))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, s.AwaitRestore(ctx))
}
