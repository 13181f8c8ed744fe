package place_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"burrow.dev/burrow/activities/place"
	"burrow.dev/burrow/internal/capacity"
	"burrow.dev/burrow/internal/config"
	"burrow.dev/burrow/internal/devstacktest"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/etcdstate"
)

type site struct {
	*place.Activities
	store *etcdstate.Store
}

func newSite(t *testing.T) site {
	t.Helper()
	store, err := etcdstate.Open(config.Etcd{Endpoints: []string{devstacktest.Etcd(t)}}, etcdstate.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	return site{place.New(store), store}
}

// host registers a host; alive ones keep their lease until the test ends.
func (s site) host(t *testing.T, name string, alive bool, labels map[string]string, change func(*capacity.Spec)) {
	t.Helper()
	spec := capacity.Spec{CPU: 2, MemoryMiB: 8192, DefaultPool: "burrow", Pools: map[string]capacity.Pool{"burrow": {CapacityGiB: 100}}, Accelerator: "tcg"}
	if change != nil {
		change(&spec)
	}
	require.NoError(t, s.store.RegisterHost(t.Context(), name, labels, spec))
	if !alive {
		return
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { _ = s.store.KeepAlive(ctx, name, func() {}) })
	t.Cleanup(func() { cancel(); wg.Wait() })
	require.Eventually(t, func() bool {
		hosts, err := s.store.AliveHosts(t.Context())
		require.NoError(t, err)
		for _, h := range hosts {
			if h == name {
				return true
			}
		}
		return false
	}, 10*time.Second, 10*time.Millisecond)
}

func ask(uid string, memory int) place.In {
	return place.In{Owner: "server/" + uid, UID: uid, CPU: 1, Memory: memory, DiskGiB: map[string]int{"": 10}}
}

func TestServersAreSpreadAndTheSameUIDStays(t *testing.T) {
	s := newSite(t)
	s.host(t, "kvm1", true, nil, nil)
	s.host(t, "kvm2", true, nil, nil)
	first, err := s.Place(t.Context(), ask("a", 1024))
	require.NoError(t, err)
	second, err := s.Place(t.Context(), ask("b", 1024))
	require.NoError(t, err)
	require.NotEqual(t, first.Host, second.Host)
	again, err := s.Place(t.Context(), ask("a", 1024))
	require.NoError(t, err)
	require.Equal(t, first, again)
	for range 2 {
		_, err = s.Release(t.Context(), place.ReleaseIn{UID: "a"})
		require.NoError(t, err, "without the host, as when Place's answer was lost")
	}
	keys, err := s.store.KeysBelow(t.Context(), "reservations")
	require.NoError(t, err)
	require.Equal(t, []string{"reservations/" + second.Host + "/b"}, keys)
}

func TestConcurrentPlacementsNeverOversubscribe(t *testing.T) {
	s := newSite(t)
	s.host(t, "kvm1", true, nil, nil) // 8 × 1 GiB, by CPU too
	s.host(t, "kvm2", true, nil, nil)
	var mu sync.Mutex
	placed := map[string]int{}
	var group errgroup.Group
	for n := range 24 {
		group.Go(func() error {
			out, err := s.Place(t.Context(), ask(fmt.Sprint(n), 1024))
			if errs.ClassOf(err) == errs.Operator {
				return nil
			}
			mu.Lock()
			defer mu.Unlock()
			placed[out.Host]++
			return err
		})
	}
	require.NoError(t, group.Wait())
	require.Equal(t, map[string]int{"kvm1": 8, "kvm2": 8}, placed)
}

func TestRefusalsSayWhatIsShortWhere(t *testing.T) {
	s := newSite(t)
	s.host(t, "dead", false, nil, nil)
	_, err := s.Place(t.Context(), ask("a", 1024))
	require.Equal(t, errs.Transient, errs.ClassOf(err))
	require.ErrorIs(t, err, errs.ErrUnavailable)
	s.host(t, "kvm1", true, map[string]string{"rack": "1"}, nil)
	s.host(t, "closed", true, nil, func(spec *capacity.Spec) { spec.Unschedulable = true })

	tests := map[string]struct {
		change func(*place.In)
		class  errs.Class
		says   []string
	}{
		"memory":        {func(in *place.In) { in.Memory = 9000 }, errs.Operator, []string{"kvm1: memory: 8192 of 8192 MiB free, 9000 needed", "closed: unschedulable"}},
		"cpu":           {func(in *place.In) { in.CPU = 9 }, errs.Operator, []string{"CPU: 8 of 8 vCPUs free, 9 needed"}},
		"disk":          {func(in *place.In) { in.DiskGiB = map[string]int{"": 60, "burrow": 50} }, errs.Operator, []string{"pool burrow: 100 of 100 GiB free, 110 needed"}},
		"pool":          {func(in *place.In) { in.DiskGiB = map[string]int{"ssd": 1} }, errs.Operator, []string{`no storage pool "ssd"`}},
		"selector":      {func(in *place.In) { in.Selector = map[string]string{"rack": "2"} }, errs.Operator, []string{"labels do not match"}},
		"unknown host":  {func(in *place.In) { in.NodeName = "kvm9" }, errs.Permanent, []string{"host kvm9: not found"}},
		"dead host":     {func(in *place.In) { in.OnHost = "dead" }, errs.Transient, []string{"host dead does not answer"}},
		"contradiction": {func(in *place.In) { in.NodeName, in.OnHost = "kvm1", "dead" }, errs.Permanent, []string{"pinned to kvm1", "on dead"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			in := ask("x", 1024)
			tt.change(&in)
			_, err := s.Place(t.Context(), in)
			require.Error(t, err)
			require.Equal(t, tt.class, errs.ClassOf(err), err)
			for _, part := range tt.says {
				require.ErrorContains(t, err, part)
			}
		})
	}
	fits := ask("x", 1024)
	fits.Selector = map[string]string{"rack": "1"}
	out, err := s.Place(t.Context(), fits)
	require.NoError(t, err)
	require.Equal(t, "kvm1", out.Host)
}
