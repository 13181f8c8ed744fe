package worker

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"burrow.dev/burrow/activities/domain"
	"burrow.dev/burrow/internal/capacity"
	"burrow.dev/burrow/internal/config"
	"burrow.dev/burrow/internal/devstacktest"
	"burrow.dev/burrow/internal/etcdstate"
	"burrow.dev/burrow/manifest"
)

// site is an etcd with workers on it.
type site struct {
	t        *testing.T
	endpoint string
	store    *etcdstate.Store
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{t: t, endpoint: devstacktest.Etcd(t)}
	s.store = s.open()
	return s
}

func (s *site) open() *etcdstate.Store {
	s.t.Helper()
	store, err := etcdstate.Open(config.Etcd{Endpoints: []string{s.endpoint}}, etcdstate.Options{LockTTL: 2 * time.Second, AliveTTL: 2 * time.Second})
	require.NoError(s.t, err)
	s.t.Cleanup(func() { require.NoError(s.t, store.Close()) })
	return store
}

// lead runs what a control worker does for liveness until the function it gives.
func (s *site) lead() (stop func()) {
	store := s.open()
	return s.background(func(ctx context.Context) {
		store.Lead(ctx, controlLeader, "test", func(ctx context.Context, term *etcdstate.Term) error {
			return watchHosts(ctx, store, term, slog.New(slog.DiscardHandler))
		})
	})
}

// hostUp runs what a host worker does for liveness, with guests in one state.
func (s *site) hostUp(name, state string) (stop func()) {
	s.t.Helper()
	require.NoError(s.t, s.store.RegisterHost(s.t.Context(), name, nil, capacity.Spec{CPU: 4}))
	p := &parts{Options: Options{Log: slog.New(slog.DiscardHandler)}, store: s.open()}
	p.Config.Host.Name = name
	h := &host{parts: p, domains: domain.New(domain.Config{Libvirt: guestState{state: state}})}
	return s.background(func(ctx context.Context) {
		var wg sync.WaitGroup
		taken := make(chan struct{}, 1)
		wg.Go(func() { _ = p.store.KeepAlive(ctx, name, func() { signal(taken) }) })
		wg.Go(func() { h.settle(ctx, taken) })
		wg.Go(func() { _ = h.review(ctx) })
		wg.Wait()
	})
}

func (s *site) background(run func(context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(s.t.Context()))
	var wg sync.WaitGroup
	wg.Go(func() { run(ctx) })
	stop = sync.OnceFunc(func() { cancel(); wg.Wait() })
	s.t.Cleanup(stop)
	return stop
}

func (s *site) server(name, host string, phase manifest.Phase, op *manifest.Operation) {
	s.t.Helper()
	spec, _ := json.Marshal(manifest.ServerSpec{Autostart: true})
	_, err := s.store.Create(s.t.Context(), manifest.Record{
		APIVersion: manifest.APIVersion, Kind: manifest.KindServer, Spec: spec,
		Metadata: manifest.RecordMeta{Metadata: manifest.Metadata{Name: name}, UID: uuid.NewString()},
		Status:   manifest.Status{Phase: phase, Host: host, Operation: op, Message: "as it was"},
	})
	require.NoError(s.t, err)
}

func (s *site) status(kind manifest.Kind, name string) manifest.Status {
	s.t.Helper()
	rec, err := s.store.Get(s.t.Context(), kind, name)
	require.NoError(s.t, err)
	return rec.Status
}

// becomes waits until a server has a phase.
func (s *site) becomes(name string, phase manifest.Phase) manifest.Status {
	s.t.Helper()
	require.Eventually(s.t, func() bool { return s.status(manifest.KindServer, name).Phase == phase }, patience, 5*time.Millisecond,
		"server/%s does not become %s", name, phase)
	return s.status(manifest.KindServer, name)
}

func (s *site) settles(name string, status manifest.Status) {
	s.t.Helper()
	_, err := s.store.Update(s.t.Context(), manifest.KindServer, name, func(r *manifest.Record) error { r.Status = status; return nil })
	require.NoError(s.t, err)
}

func TestAVanishedHostsServersAreUnknownUntilItIsBack(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	op := &manifest.Operation{WorkflowID: "server/building", RunID: "run", Type: "ProvisionServer"}
	s.server("db", "kvm1", manifest.PhaseRunning, nil)
	s.server("building", "kvm1", manifest.PhaseProvisioning, op)
	s.server("going", "kvm1", manifest.PhaseDeleting, op)
	s.server("broken", "kvm1", manifest.PhaseFailed, nil)
	s.server("else", "kvm2", manifest.PhaseRunning, nil)
	down := s.hostUp("kvm1", "running")
	s.hostUp("kvm2", "running")
	require.Eventually(t, func() bool {
		alive, err := s.store.AliveHosts(t.Context())
		return err == nil && len(alive) == 2
	}, patience, 5*time.Millisecond)
	s.lead()
	s.becomes("db", manifest.PhaseRunning)

	down()
	s.server("off", "kvm1", manifest.PhaseStopped, nil) // as if written while it vanished
	for name, was := range map[string]manifest.Phase{"db": manifest.PhaseRunning, "off": manifest.PhaseStopped} {
		status := s.becomes(name, manifest.PhaseUnknown)
		require.Equal(t, was, status.Lost.Phase)
		require.Equal(t, "as it was", status.Lost.Message)
		require.WithinDuration(t, time.Now(), status.Lost.Since, patience)
		require.Contains(t, status.Message, "host kvm1 does not answer since "+status.Lost.Since.Format(time.RFC3339))
		require.Contains(t, status.Message, "burrow doctor")
	}
	require.Equal(t, manifest.PhaseProvisioning, s.status(manifest.KindServer, "building").Phase)
	require.Equal(t, manifest.PhaseDeleting, s.status(manifest.KindServer, "going").Phase)
	require.Equal(t, manifest.PhaseFailed, s.status(manifest.KindServer, "broken").Phase)
	require.Equal(t, manifest.PhaseRunning, s.status(manifest.KindServer, "else").Phase)
	require.Eventually(t, func() bool {
		host := s.status(manifest.KindHost, "kvm1")
		return host.Phase == manifest.PhaseUnknown && host.Lost != nil
	}, patience, 5*time.Millisecond)
	require.Contains(t, s.status(manifest.KindHost, "kvm1").Message, "does not answer since")

	s.settles("building", manifest.Status{Phase: manifest.PhaseRunning, Host: "kvm1"})
	require.Equal(t, manifest.PhaseRunning, s.becomes("building", manifest.PhaseUnknown).Lost.Phase, "what an operation settles on a lost host is lost as well")

	s.hostUp("kvm1", "running")
	for _, name := range []string{"db", "off", "building"} {
		status := s.becomes(name, manifest.PhaseRunning)
		require.Nil(t, status.Lost)
		require.NotContains(t, status.Message, "does not answer")
	}
	require.Equal(t, manifest.Status{Phase: manifest.PhaseReady, Host: "kvm1"}, s.status(manifest.KindHost, "kvm1"))
}

func TestANewLeaderCatchesUpAndKeepsSinceWhen(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.server("db", "kvm1", manifest.PhaseRunning, nil)
	down := s.hostUp("kvm1", "running")
	require.Eventually(t, func() bool { return s.status(manifest.KindHost, "kvm1").Phase == manifest.PhaseReady }, patience, 5*time.Millisecond)
	down() // and nobody leads
	resign := s.lead()
	first := s.becomes("db", manifest.PhaseUnknown)
	resign()
	s.server("later", "kvm1", manifest.PhaseRunning, nil)
	s.lead()
	require.Equal(t, first.Lost.Since, s.becomes("later", manifest.PhaseUnknown).Lost.Since, "from the host's record")
	require.Equal(t, first, s.status(manifest.KindServer, "db"))
}

func TestAHostThatComesBackWhileNobodyLeadsEndsUnknownByItself(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.server("db", "kvm1", manifest.PhaseRunning, nil)
	resign := s.lead()
	s.becomes("db", manifest.PhaseUnknown)
	resign()
	s.hostUp("kvm1", "shutoff")
	s.becomes("db", manifest.PhaseStopped)
}

func TestAHostWithoutItsLeaseDoesNotContradictTheLeader(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.server("db", "kvm1", manifest.PhaseRunning, nil)
	s.lead()
	lost := s.becomes("db", manifest.PhaseUnknown)
	p := &parts{Options: Options{Log: slog.New(slog.DiscardHandler)}, store: s.store}
	p.Config.Host.Name = "kvm1"
	h := &host{parts: p, domains: domain.New(domain.Config{Libvirt: guestState{state: "running"}})}
	require.NoError(t, h.recheck(t.Context()))
	require.Equal(t, lost, s.status(manifest.KindServer, "db"), "they would write in turns without end")
}

func TestAServerLostWhileItWasOffIsNotStartedByItsHostsReturn(t *testing.T) {
	h := &host{parts: &parts{Options: Options{Config: config.Worker{Host: config.Host{Name: "kvm1"}}}}}
	spec, _ := json.Marshal(manifest.ServerSpec{Autostart: true})
	rec := manifest.Record{Spec: spec, Status: manifest.Status{Phase: manifest.PhaseStopped, Host: "kvm1", Disks: []manifest.Disk{{Name: "boot"}}}}
	rec.Status.Lose(time.Now(), "host kvm1 does not answer")
	require.Equal(t, manifest.PhaseUnknown, rec.Status.Phase)
	require.False(t, h.shouldRun(rec, false), "after a restart of the worker")
	require.True(t, h.shouldRun(rec, true), "after a boot, as any that nobody stopped")
}
