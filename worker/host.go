package worker

import (
	"context"
	"log/slog"
	"path/filepath"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/activities/ansible"
	"burrow.dev/burrow/activities/domain"
	"burrow.dev/burrow/activities/guest"
	"burrow.dev/burrow/activities/image"
	"burrow.dev/burrow/activities/network"
	"burrow.dev/burrow/activities/seed"
	"burrow.dev/burrow/activities/sweep"
	"burrow.dev/burrow/activities/volume"
	"burrow.dev/burrow/internal/accel"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/gateway"
	"burrow.dev/burrow/internal/hostnet"
	"burrow.dev/burrow/internal/libvirtx"
	"burrow.dev/burrow/internal/ovsx"
	"burrow.dev/burrow/manifest"
)

// host is the host role: everything that touches this hypervisor.
type host struct {
	*parts
	libvirt  *libvirtx.Connection
	accel    accel.Result
	domains  *domain.Activities
	networks *network.Activities
	volumes  *volume.Activities
	images   *image.Activities
	seeds    *seed.Activities
	guests   *guest.Activities
	runs     *ansible.Activities
	sweeps   *sweep.Host
	down     []manifest.Record // should run, and could not be started yet
	poolGiB  int               // as registered
	// waiting says what the host still waits for before it takes work; "" when ready.
	waiting atomic.Pointer[string]
}

// newHost builds the drivers and activities of this host. It asks nothing of libvirt or
// OVS yet: they may come later than we do.
func newHost(ctx context.Context, p *parts) (*host, error) {
	if err := accel.FixPermissions(p.Log); err != nil {
		p.Log.Warn("/dev/kvm", slog.Any("error", err))
	}
	h := &host{parts: p, accel: accel.DetectOnce(ctx, p.Config.Host.Accelerator, p.Config.AcceleratorFile())}
	h.waits("libvirt and Open vSwitch")
	p.Log.Info("accelerator", slog.String("accelerator", h.accel.Accelerator), slog.String("reason", h.accel.Reason))
	h.libvirt = libvirtx.New(p.Config.Host.Libvirt, p.Log)
	sw := ovsx.New()
	stack := hostnet.New(hostnet.DefaultRunDir, p.Log)
	h.networks = network.New(p.Config.Host.Name, p.store, sw, stack, p.Log)
	consoles := filepath.Join(p.Config.DataDir, "consoles")
	h.domains = domain.New(domain.Config{
		Libvirt: h.libvirt, Switch: sw, Accelerator: h.accel.Accelerator, ConsoleDir: consoles, Log: p.Log,
	})
	h.volumes = volume.New(volume.Config{
		Libvirt: h.libvirt, Pool: p.Config.Host.Pool, Marks: filepath.Join(p.Config.DataDir, "disks"), Log: p.Log,
	})
	seeds := filepath.Join(p.Config.DataDir, "seeds")
	h.seeds = seed.New(seed.Config{Dir: seeds, Secrets: p.secrets, Passwords: p.secrets.Users(), Bundles: p.blobs, Log: p.Log})
	h.sweeps = sweep.NewHost(sweep.HostConfig{
		Name: p.Config.Host.Name, Store: p.store, Libvirt: h.libvirt, Switch: sw, Stack: stack, SeedDir: seeds, Consoles: consoles,
		Domains: h.domains, Network: h.networks, Volumes: h.volumes, Seeds: h.seeds, Log: p.Log,
	})
	h.guests = guest.New(guest.Options{Dialer: h.networks, Keys: p.keys, Console: consoleTail{consoles}, Log: p.Log})
	h.images = image.New(image.Config{
		Libvirt: h.libvirt, Records: p.store, Pool: p.Config.Host.Pool, CacheDir: p.Config.Host.CacheDir, Host: p.Config.Host.Name, Log: p.Log,
	})
	var err error
	h.runs, err = p.ansible(h.networks, h.guests)
	return h, err
}

func (h *host) close() { h.libvirt.Close() }

func (h *host) waits(what string) { h.waiting.Store(&what) }

// serve lends the gateway what only a host has.
func (h *host) serve(deps *gateway.Deps) {
	deps.Info.Accelerator, deps.Info.AcceleratorReason = h.accel.Accelerator, h.accel.Reason
	deps.Waiting = func() string { return *h.waiting.Load() }
	deps.Dialer, deps.Keys, deps.Consoles, deps.Logs = h.networks, h.keys, h.domains, h.runs.Logs()
}

// run makes the host ready, then serves its queue until ctx ends.
func (h *host) run(ctx context.Context) error {
	if err := h.prepare(ctx); err != nil {
		return err
	}
	w := h.newWorker(activities.HostQueue(h.Config.Host.Name), hostWide, h.activities())
	if err := w.Start(); err != nil {
		return errs.NewTransient("queue "+activities.HostQueue(h.Config.Host.Name), "poll", err)
	}
	defer w.Stop()
	group, running := errgroup.WithContext(ctx)
	taken := make(chan struct{}, 1)
	group.Go(func() error { return h.store.KeepAlive(running, h.Config.Host.Name, func() { signal(taken) }) })
	group.Go(func() error { h.settle(running, taken); return nil })
	group.Go(func() error { h.networks.Keep(running); return nil })
	group.Go(func() error { return h.follow(running) })
	group.Go(func() error { return h.review(running) })
	group.Go(func() error { h.restoreRest(running); return nil })
	group.Go(func() error { h.measure(running); return nil })
	if err := group.Wait(); err != nil && ctx.Err() == nil {
		return err
	}
	return nil
}

// settle looks at every guest each time the host's lease was taken: while it had none, a
// leader may have marked its servers Unknown, and none may stay so. When that is done for
// the first time the host is ready: from then on servers may be placed on it.
func (h *host) settle(ctx context.Context, taken <-chan struct{}) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-taken:
		}
		for ctx.Err() == nil {
			err := h.recheck(ctx)
			h.waits("") // one guest that nobody can look at does not keep the host from work
			if err == nil {
				break
			}
			h.Log.Warn("status not written of all servers", slog.Any("error", err))
			select {
			case <-ctx.Done():
			case <-time.After(settleEvery):
			}
		}
	}
}

// settleEvery is how soon it is tried again while libvirt or etcd do not answer.
const settleEvery = time.Second

// signal leaves a token in a channel that holds one.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// prepareEvery is how often a host that is not ready (libvirtd or OVS still starting)
// tries again.
const prepareEvery = time.Second

// prepare brings the host to where it can take work: pool, registration, what it owes if it
// was declared lost, and what its records say should run. What is not there yet is waited for, and said.
func (h *host) prepare(ctx context.Context) error {
	tick := time.NewTicker(prepareEvery)
	defer tick.Stop()
	for {
		err := h.tryPrepare(ctx)
		if err == nil || ctx.Err() != nil {
			return ctx.Err()
		}
		h.waits(err.Error())
		h.Log.Warn("host not ready", slog.Any("error", err))
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

func (h *host) tryPrepare(ctx context.Context) error {
	if err := h.libvirt.EnsurePool(ctx, h.Config.Host.Pool, h.Config.PoolDir()); err != nil {
		return err
	}
	if err := h.volumes.MarkStanding(ctx); err != nil {
		return err
	}
	if err := h.register(ctx); err != nil {
		return err
	}
	if err := h.runs.ReapAll(ctx); err != nil {
		return err
	}
	if err := h.debtor().payAll(ctx); err != nil {
		return err
	}
	return h.restore(ctx)
}

func (h *host) activities() map[string]any {
	return map[string]any{
		activities.ImageEnsure:      h.images.Ensure,
		activities.ImageImport:      h.images.Import,
		activities.ImageBuild:       h.images.Build,
		activities.ImageRemove:      h.images.Remove,
		activities.VolumeBuild:      h.volumes.Build,
		activities.VolumeRemove:     h.volumes.Remove,
		activities.VolumeCreate:     h.volumes.Create,
		activities.VolumeAdd:        h.volumes.Add,
		activities.VolumeDrop:       h.volumes.Drop,
		activities.VolumeRebuild:    h.volumes.Rebuild,
		activities.VolumeDiscard:    h.volumes.Discard,
		activities.VolumeDelete:     h.volumes.Delete,
		activities.NetworkEnsure:    h.networks.Ensure,
		activities.NetworkRelease:   h.networks.Release,
		activities.NetworkProbe:     h.networks.Probe,
		activities.NetworkWire:      h.networks.Wire,
		activities.NetworkUnwire:    h.networks.Unwire,
		activities.SeedWrite:        h.seeds.Write,
		activities.SeedRemove:       h.seeds.Remove,
		activities.SeedPrune:        h.seeds.Prune,
		activities.SeedReaddress:    h.seeds.Readdress,
		activities.DomainStart:      h.domains.Start,
		activities.DomainResume:     h.domains.Resume,
		activities.DomainShutdown:   h.domains.Shutdown,
		activities.DomainPlug:       h.domains.Plug,
		activities.DomainUnplug:     h.domains.Unplug,
		activities.DomainGrow:       h.domains.Grow,
		activities.DomainRedefine:   h.domains.Redefine,
		activities.DomainPlugNICs:   h.domains.PlugNICs,
		activities.DomainUnplugNICs: h.domains.UnplugNICs,
		activities.DomainInsertSeed: h.domains.InsertSeed,
		activities.DomainFit:        h.domains.Fit,
		activities.DomainRemove:     h.domains.Remove,
		activities.DomainLook:       h.domains.Look,
		activities.GuestWaitReady:   h.guests.WaitReady,
		activities.AnsibleRun:       h.runs.Run,
		activities.AnsibleReap:      h.runs.Reap,
		activities.SweepLookHost:    h.sweeps.LookHost,
		activities.SweepClearHost:   h.sweeps.ClearHost,
	}
}
