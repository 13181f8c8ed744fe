package worker

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/activities/ansible"
	"burrow.dev/burrow/activities/domain"
	"burrow.dev/burrow/activities/guest"
	"burrow.dev/burrow/activities/image"
	"burrow.dev/burrow/activities/ipam"
	"burrow.dev/burrow/activities/lost"
	"burrow.dev/burrow/activities/network"
	"burrow.dev/burrow/activities/place"
	"burrow.dev/burrow/activities/seed"
	"burrow.dev/burrow/activities/state"
	"burrow.dev/burrow/activities/sweep"
	"burrow.dev/burrow/activities/volume"
	"burrow.dev/burrow/internal/addrspace"
	"burrow.dev/burrow/internal/capacity"
	"burrow.dev/burrow/internal/config"
	"burrow.dev/burrow/internal/devstacktest"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/etcdstate"
	"burrow.dev/burrow/internal/etcdstate/addresses"
	"burrow.dev/burrow/internal/keyring"
	"burrow.dev/burrow/internal/sshkeys"
	"burrow.dev/burrow/manifest"
	"burrow.dev/burrow/workflows"
)

// sweepWorld is a real etcd, a real Temporal whose store can be lost, the real control
// activities, and one host whose things are names in a map.
type sweepWorld struct {
	t        *testing.T
	store    *etcdstate.Store
	secrets  *etcdstate.Secrets
	pool     *addresses.Allocator
	temporal *devstacktest.Process
	client   client.Client
	clients  []client.Client // of this Temporal and those that were lost
	workers  []worker.Worker
	onHost   worker.Worker // the newest of the host's queue
	host     *fakeHost

	hostVanishes func()
}

func newSweepWorld(t *testing.T) *sweepWorld {
	t.Helper()
	key := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(key, []byte(strings.Repeat("k", 32)), 0o600))
	store, err := etcdstate.Open(config.Etcd{Endpoints: []string{devstacktest.Etcd(t)}}, etcdstate.Options{})
	require.NoError(t, err)
	w := &sweepWorld{t: t, store: store, pool: addresses.New(store, addresses.Options{Quarantine: -1})}
	ring, err := keyring.Open(t.Context(), keyring.Options{File: key})
	require.NoError(t, err)
	w.secrets = etcdstate.OpenSecrets(store, ring)
	w.host = &fakeHost{w: w, things: map[string]string{}, blocks: map[string]chan struct{}{}, reached: make(chan string, 100)}
	require.NoError(t, store.RegisterHost(t.Context(), "kvm1", nil, capacity.Spec{
		CPU: 64, MemoryMiB: 1 << 20, DefaultPool: "p", Pools: map[string]capacity.Pool{"p": {CapacityGiB: 10000}},
	}))
	w.hostLives()
	w.start()
	t.Cleanup(func() {
		w.stop()
		w.hostVanishes()
		w.pool.Close()
		require.NoError(t, store.Close())
	})
	return w
}

// hostLives takes the host's lease, until hostVanishes.
func (w *sweepWorld) hostLives() {
	w.t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.t.Context()))
	ended := make(chan struct{})
	go func() { defer close(ended); _ = w.store.KeepAlive(ctx, "kvm1", func() {}) }()
	w.hostVanishes = sync.OnceFunc(func() { cancel(); <-ended })
	require.Eventually(w.t, func() bool {
		hosts, err := w.store.AliveHosts(w.t.Context())
		return err == nil && len(hosts) == 1
	}, patience, 10*time.Millisecond)
}

// start brings up an empty Temporal and workers of both queues.
func (w *sweepWorld) start() {
	t := w.t
	var err error
	w.temporal, err = devstacktest.Start(context.WithoutCancel(t.Context()), "serve", "--test", "--data-dir", t.TempDir())
	require.NoError(t, err)
	w.client, err = client.DialContext(t.Context(), client.Options{
		HostPort: w.temporal.TemporalAddress, Namespace: w.temporal.Namespace,
		Logger: sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler)),
	})
	require.NoError(t, err)
	p := &parts{Options: Options{Log: slog.New(slog.DiscardHandler)}, temporal: w.client, store: w.store}
	control := p.newWorker(activities.ControlQueue, controlWide, controlActivities(
		state.New(w.store, w.client), place.New(w.store), nil, ipam.New(w.store, w.pool), nil,
		sweep.NewControl(w.store, w.pool, w.secrets, w.client), lost.New(w.store, w.client)))
	registerWorkflows(control)
	w.clients = append(w.clients, w.client)
	w.workers = append(w.workers, control)
	require.NoError(t, control.Start())
	w.startHost()
}

// startHost starts a worker of the host's queue.
func (w *sweepWorld) startHost() {
	p := &parts{Options: Options{Log: slog.New(slog.DiscardHandler)}, temporal: w.client}
	w.onHost = p.newWorker(activities.HostQueue("kvm1"), hostWide, w.host.activities())
	w.workers = append(w.workers, w.onHost)
	require.NoError(w.t, w.onHost.Start())
}

// loseHistory is what happens when Temporal's store is lost and etcd is not. The workers of
// before find nobody any more; they are stopped at the end, which takes its time.
func (w *sweepWorld) loseHistory() {
	w.kill()
	w.start()
}

func (w *sweepWorld) kill() {
	require.NoError(w.t, w.temporal.Kill())
	w.host.releaseAll()
}

func (w *sweepWorld) stop() {
	w.kill()
	var stopping sync.WaitGroup
	for _, one := range w.workers {
		stopping.Go(one.Stop)
	}
	stopping.Wait()
	for _, c := range w.clients {
		c.Close()
	}
}

// as makes a subtest's failures its own; the result gives them back.
func (w *sweepWorld) as(t *testing.T) func() {
	outer := w.t
	w.t = t
	return func() { w.t = outer }
}

func (w *sweepWorld) run(id, name string, in any) client.WorkflowRun {
	w.t.Helper()
	run, err := w.client.ExecuteWorkflow(w.t.Context(), client.StartWorkflowOptions{
		ID: id, TaskQueue: activities.ControlQueue, WorkflowIDReusePolicy: enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
	}, name, in)
	require.NoError(w.t, err)
	return run
}

func (w *sweepWorld) sweep(in workflows.SweepIn) workflows.SweepOut {
	w.t.Helper()
	var out workflows.SweepOut
	require.NoError(w.t, w.run(workflows.IDSweep, workflows.NameSweep, in).Get(w.t.Context(), &out))
	return out
}

func (w *sweepWorld) drift() workflows.SweepOut {
	w.t.Helper()
	var out workflows.SweepOut
	require.NoError(w.t, w.run(workflows.IDDrift, workflows.NameDrift, workflows.SweepIn{}).Get(w.t.Context(), &out))
	return out
}

func (w *sweepWorld) record(kind manifest.Kind, name string) manifest.Record {
	w.t.Helper()
	rec, err := w.store.Get(w.t.Context(), kind, name)
	require.NoError(w.t, err)
	return rec
}

func (w *sweepWorld) awaitPhase(name string, phase manifest.Phase) manifest.Record {
	w.t.Helper()
	var rec manifest.Record
	require.Eventually(w.t, func() bool {
		var err error
		rec, err = w.store.Get(w.t.Context(), manifest.KindServer, name)
		return err == nil && rec.Status.Phase == phase
	}, patience, 20*time.Millisecond)
	return rec
}

func (w *sweepWorld) network(name string) {
	w.t.Helper()
	require.NoError(w.t, w.run("network/"+name, workflows.NameCreateNetwork, workflows.CreateNetworkIn{
		Metadata: manifest.Metadata{Name: name}, Spec: manifest.NetworkSpec{Mode: manifest.ModeIsolated},
	}).Get(w.t.Context(), nil))
}

func (w *sweepWorld) provision(name string, change func(*manifest.ServerSpec)) client.WorkflowRun {
	w.t.Helper()
	spec := manifest.ServerSpec{
		CPU: 1, Memory: 256, Image: "debian12", Readiness: manifest.ReadinessRunning, OnFailure: manifest.OnFailureRollback,
		NetworkInterface: []manifest.NIC{{Name: "a-0", Network: "a"}},
	}
	if change != nil {
		change(&spec)
	}
	return w.run("server/"+name, workflows.NameProvisionServer, workflows.ProvisionServerIn{Metadata: manifest.Metadata{Name: name}, Spec: spec})
}

// census is all that may be left of a server: what its host has, and what etcd holds.
func (w *sweepWorld) census() []string {
	w.t.Helper()
	all := w.host.list()
	for _, folder := range []string{"servers", "volumes", "images", "ipam", "macs", "reservations", "placements", "refs", "claims", "secrets", "lost", "debts"} {
		keys, err := w.store.KeysBelow(w.t.Context(), folder)
		require.NoError(w.t, err)
		for _, key := range keys {
			if !strings.Contains(key, "/cursor") && !strings.Contains(key, "/b/") && !strings.Contains(key, "/q/") {
				all = append(all, key)
			}
		}
	}
	slices.Sort(all)
	return all
}

// fakeHost keeps what a host would have: "domain/<uid>" → state, "volume/<uid>", …
type fakeHost struct {
	w       *sweepWorld
	mu      sync.Mutex
	things  map[string]string
	blocks  map[string]chan struct{}
	fails   map[string]error
	reached chan string
}

// block makes an activity wait, after its work is done, until its worker is gone.
func (h *fakeHost) block(activity string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.blocks[activity] = make(chan struct{})
	for len(h.reached) > 0 { // what was called before does not count
		<-h.reached
	}
}

func (h *fakeHost) releaseAll() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for name, c := range h.blocks {
		close(c)
		delete(h.blocks, name)
	}
}

func (h *fakeHost) awaitReached(activity string) {
	h.w.t.Helper()
	limit := time.After(patience)
	for {
		select {
		case name := <-h.reached:
			if name == activity {
				return
			}
		case <-limit:
			h.w.t.Fatalf("%s was never called", activity)
		}
	}
}

func (h *fakeHost) list() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var all []string
	for name := range h.things {
		all = append(all, "host: "+name)
	}
	return all
}

func (h *fakeHost) get(name string) (string, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	v, ok := h.things[name]
	return v, ok
}

func (h *fakeHost) set(name, value string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if value == "" {
		delete(h.things, name)
		return
	}
	h.things[name] = value
}

// on makes an activity: its work, then the block that a test put in its way.
func on[In, Out any](h *fakeHost, name string, do func(context.Context, In) (Out, error)) (string, any) {
	return name, func(ctx context.Context, in In) (Out, error) {
		out, err := do(ctx, in)
		h.mu.Lock()
		block, fails := h.blocks[name], h.fails[name]
		h.mu.Unlock()
		select {
		case h.reached <- name:
		default:
		}
		if block != nil {
			select {
			case <-block:
			case <-ctx.Done():
			}
		}
		if fails != nil {
			err = fails
		}
		return out, err
	}
}

func (h *fakeHost) activities() map[string]any {
	all := map[string]any{}
	add := func(name string, run any) { all[name] = run }
	type nothing = activities.Nothing
	add(on(h, activities.ImageEnsure, func(context.Context, image.EnsureIn) (image.EnsureOut, error) {
		return image.EnsureOut{User: "debian"}, nil
	}))
	add(on(h, activities.VolumeBuild, func(_ context.Context, in volume.BuildIn) (volume.BuildOut, error) {
		h.set("volume/"+in.Server.UID, "disk")
		return volume.BuildOut{Disks: []manifest.Disk{{Name: "boot", Target: "vda", Owned: true}}}, nil
	}))
	add(on(h, activities.VolumeRemove, func(_ context.Context, in volume.RemoveIn) (nothing, error) {
		h.set("volume/"+in.Server.UID, "")
		return nothing{}, nil
	}))
	add(on(h, activities.VolumeCreate, func(_ context.Context, in volume.CreateIn) (volume.CreateOut, error) {
		h.set("vol/"+in.UID, "disk")
		return volume.CreateOut{Volume: manifest.VolumeStatus{Volume: in.Name}}, nil
	}))
	add(on(h, activities.VolumeDelete, func(_ context.Context, in volume.DeleteIn) (nothing, error) {
		h.set("vol/"+in.UID, "")
		return nothing{}, nil
	}))
	add(on(h, activities.NetworkEnsure, func(ctx context.Context, in network.EnsureIn) (nothing, error) {
		for _, p := range in.Ports {
			if err := h.w.store.AddReference(ctx, p.NetworkUID, "kvm1", in.Server.UID); err != nil {
				return nothing{}, err
			}
		}
		return nothing{}, nil
	}))
	add(on(h, activities.NetworkRelease, func(ctx context.Context, in network.ReleaseIn) (nothing, error) {
		for _, p := range in.Ports {
			if _, err := h.w.store.DropReference(ctx, p.NetworkUID, "kvm1", in.Server.UID); err != nil {
				return nothing{}, err
			}
		}
		return nothing{}, nil
	}))
	add(on(h, activities.NetworkProbe, func(context.Context, network.ProbeIn) (network.ProbeOut, error) { return network.ProbeOut{}, nil }))
	add(on(h, activities.NetworkWire, func(_ context.Context, in network.WireIn) (nothing, error) {
		h.set("port/"+in.Server.UID, "wired")
		return nothing{}, nil
	}))
	add(on(h, activities.NetworkUnwire, func(_ context.Context, in network.UnwireIn) (nothing, error) {
		h.set("port/"+in.Server.UID, "")
		return nothing{}, nil
	}))
	add(on(h, activities.SeedWrite, func(ctx context.Context, in seed.WriteIn) (seed.WriteOut, error) {
		h.set("seed/"+in.Server.UID, "iso")
		_, err := sshkeys.Ensure(ctx, h.w.secrets, in.Server.UID)
		return seed.WriteOut{Login: "debian"}, err
	}))
	add(on(h, activities.SeedRemove, func(ctx context.Context, in seed.RemoveIn) (nothing, error) {
		h.set("seed/"+in.Server.UID, "")
		return nothing{}, sshkeys.Delete(ctx, h.w.secrets, in.Server.UID)
	}))
	add(on(h, activities.DomainStart, func(_ context.Context, in domain.StartIn) (domain.StartOut, error) {
		if s, ok := h.get("domain/" + in.Server.UID); ok && s != "shutoff" {
			return domain.StartOut{State: s}, nil
		}
		h.set("domain/"+in.Server.UID, "paused")
		return domain.StartOut{State: "paused"}, nil
	}))
	add(on(h, activities.DomainResume, func(_ context.Context, in domain.ResumeIn) (nothing, error) {
		h.set("domain/"+in.Server.UID, "running")
		return nothing{}, nil
	}))
	add(on(h, activities.DomainShutdown, func(_ context.Context, in domain.ShutdownIn) (nothing, error) {
		h.set("domain/"+in.Server.UID, "shutoff")
		return nothing{}, nil
	}))
	add(on(h, activities.DomainRemove, func(_ context.Context, in domain.RemoveIn) (nothing, error) {
		h.set("domain/"+in.Server.UID, "")
		return nothing{}, nil
	}))
	add(on(h, activities.DomainLook, func(_ context.Context, in domain.LookIn) (domain.LookOut, error) {
		s, ok := h.get("domain/" + in.Server.UID)
		return domain.LookOut{Found: ok, State: s}, nil
	}))
	add(on(h, activities.GuestWaitReady, func(context.Context, guest.WaitReadyIn) (guest.WaitReadyOut, error) {
		return guest.WaitReadyOut{}, nil
	}))
	add(on(h, activities.AnsibleRun, func(context.Context, ansible.RunIn) (ansible.RunOut, error) {
		return ansible.RunOut{}, errs.NewOperator("server/db", "run playbook", errs.Reason("a task failed"), "mend it")
	}))
	add(on(h, activities.AnsibleReap, func(context.Context, ansible.ReapIn) (nothing, error) { return nothing{}, nil }))
	add(on(h, activities.SweepLookHost, func(context.Context, sweep.LookIn) (sweep.LookOut, error) { return sweep.LookOut{}, nil }))
	add(on(h, activities.SweepClearHost, func(_ context.Context, in sweep.ClearIn) (sweep.ClearOut, error) {
		return sweep.ClearOut(in), nil
	}))
	// The playbook check is the control queue's; it is not part of this world.
	return all
}

// conditionOf is a record's condition of a type; its zero value when there is none.
func conditionOf(rec manifest.Record, kind string) manifest.Condition {
	for _, c := range rec.Status.Conditions {
		if c.Type == kind {
			return c
		}
	}
	return manifest.Condition{}
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.MarshalIndent(v, "", " ")
	require.NoError(t, err)
	return string(b)
}

func wantsFor(s activities.Server) []addrspace.Want {
	return []addrspace.Want{{Owner: s.UID + "/a-0/0"}, {Owner: s.UID + "/a-1/0"}}
}
