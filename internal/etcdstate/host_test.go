package etcdstate

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"burrow.dev/burrow/internal/capacity"
	"burrow.dev/burrow/internal/devstacktest"
	"burrow.dev/burrow/manifest"
)

func hostAlive(t *testing.T, s *Store, host string) bool {
	t.Helper()
	hosts, err := s.AliveHosts(t.Context())
	require.NoError(t, err)
	return slices.Contains(hosts, host)
}

func TestHostIsReadyWhileItsWorkerLives(t *testing.T) {
	t.Parallel()
	endpoint := devstacktest.Etcd(t)
	s, line := openStore(t, endpoint, Options{}), newCable(t, endpoint)
	worker := openStore(t, line.endpoint(), Options{AliveTTL: 2 * time.Second})
	phase := func() manifest.Phase {
		rec, err := s.Get(t.Context(), manifest.KindHost, "kvm1")
		require.NoError(t, err)
		return rec.Status.Phase
	}
	require.NoError(t, worker.RegisterHost(t.Context(), "kvm1", nil, capacity.Spec{CPU: 4}))
	require.Equal(t, manifest.PhaseUnknown, phase())
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { require.NoError(t, worker.KeepAlive(ctx, "kvm1", func() {})) })
	becomes := func(want manifest.Phase) {
		t.Helper()
		require.Eventually(t, func() bool { return phase() == want }, patience, 20*time.Millisecond)
	}
	becomes(manifest.PhaseReady)
	line.setCut(true) // as when the machine is gone, or the process stopped
	becomes(manifest.PhaseUnknown)
	line.setCut(false)
	becomes(manifest.PhaseReady)
	cancel()
	wg.Wait()
	require.False(t, hostAlive(t, s, "kvm1"), "the lease is given back at once")
}

func TestRestartedWorkerTakesTheHostOver(t *testing.T) {
	t.Parallel()
	endpoint := devstacktest.Etcd(t)
	s, line := openStore(t, endpoint, Options{}), newCable(t, endpoint)
	killed := openStore(t, line.endpoint(), Options{AliveTTL: 2 * time.Second})
	var wg sync.WaitGroup
	defer wg.Wait()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	wg.Go(func() { _ = killed.KeepAlive(ctx, "kvm1", func() {}) })
	require.Eventually(t, func() bool { return hostAlive(t, s, "kvm1") }, patience, 10*time.Millisecond)
	first, err := s.client.Get(t.Context(), s.Key("alive", "kvm1"))
	require.NoError(t, err)
	line.setCut(true)
	wg.Go(func() { _ = s.KeepAlive(ctx, "kvm1", func() {}) })
	require.Eventually(t, func() bool {
		lease, err := s.client.TimeToLive(t.Context(), clientv3.LeaseID(first.Kvs[0].Lease))
		require.NoError(t, err)
		require.True(t, hostAlive(t, s, "kvm1"))
		return lease.TTL == -1
	}, patience, 50*time.Millisecond, "the old lease runs out, the host stays alive")
}

func TestRegisteringAgainKeepsWhatAUserSet(t *testing.T) {
	s := newTestStore(t)
	require.NoError(t, s.RegisterHost(t.Context(), "kvm1", map[string]string{"arch": "x86_64"}, capacity.Spec{CPU: 2, MemoryMiB: 1}))
	_, err := s.Update(t.Context(), manifest.KindHost, "kvm1", func(r *manifest.Record) error {
		r.Metadata.Labels = map[string]string{"rack": "1", "arch": "mine"}
		r.Spec, _ = json.Marshal(capacity.Spec{CPU: 2, MemoryMiB: 1, Unschedulable: true, CPUOvercommit: 2})
		return nil
	})
	require.NoError(t, err)
	require.NoError(t, s.RegisterHost(t.Context(), "kvm1", map[string]string{"arch": "x86_64"}, capacity.Spec{CPU: 8, MemoryMiB: 2}))
	rec, err := s.Get(t.Context(), manifest.KindHost, "kvm1")
	require.NoError(t, err)
	require.Equal(t, map[string]string{"rack": "1", "arch": "mine"}, rec.Metadata.Labels)
	var spec capacity.Spec
	require.NoError(t, json.Unmarshal(rec.Spec, &spec))
	require.Equal(t, capacity.Spec{CPU: 8, MemoryMiB: 2, Unschedulable: true, CPUOvercommit: 2}, spec)
}

func TestHealthTellsSizeQuotaAndAlarms(t *testing.T) {
	t.Parallel()
	s := newTestStore(t)
	h, err := s.Health(t.Context())
	require.NoError(t, err)
	require.Len(t, h.Members, 1)
	require.True(t, h.Members[0].Leader)
	require.Positive(t, h.Members[0].SizeBytes)
	require.Positive(t, h.Members[0].QuotaBytes)
	require.Empty(t, h.Alarms)
	down := openStore(t, "http://127.0.0.1:1", Options{})
	_, err = down.Health(t.Context())
	require.Error(t, err)
}
