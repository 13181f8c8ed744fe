package workflows

import (
	"strings"

	"go.temporal.io/sdk/workflow"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/activities/ipam"
	"burrow.dev/burrow/activities/seed"
	"burrow.dev/burrow/activities/volume"
	"burrow.dev/burrow/manifest"
)

const (
	stepNewBoot = "build boot volume"
	stepOldBoot = "delete old boot volume"
)

// RebuildServer builds a server anew on a new boot disk. It stays the same server: uid,
// addresses, MACs, host keys and data disks. The old boot disk is kept beside the new one
// until the new server is ready; given up, cancelled or failed, the server runs from the
// old one again, as it was.
func RebuildServer(ctx workflow.Context, in RebuildServerIn) (manifest.Record, error) {
	r := &rebuild{in: in}
	r.standing.in.Metadata.Name, r.standing.in.RequestedBy = in.Name, in.RequestedBy
	body := sequence{
		step{stepRecord, r.record},
		headStart{inputsHeadStart, []step{
			{stepKeys, r.keys},
			{stepCheck, r.check},
		}},
		step{stepAddresses, r.addresses},
		step{stepImage, r.image},
		step{stepNewBoot, r.newBoot},
		step{stepSeed, r.seed},
		step{stepShutdown, r.shutdown},
		step{stepDomain, r.start},
		step{stepWire, r.wire},
		step{stepReady, r.ready},
		step{stepPlaybook, r.playbook},
		step{stepFinish, r.finish},
		step{stepOldBoot, r.discard},
	}
	op, err := begin(ctx, NameRebuildServer, "server/"+in.Name, manifest.PhaseUpdating, body)
	if err != nil {
		return manifest.Record{}, err
	}
	r.operation = op
	op.onFailure, op.recordHold, op.beforeUndo = r.policy, r.holdRecord, r.unhold
	if err := op.listen(ctx, stepPlaybook, r.revise); err != nil {
		return manifest.Record{}, err
	}
	describe(ctx, op, in.Name, in.RequestedBy)
	if err := op.run(ctx, body); err != nil {
		return manifest.Record{}, fail(err)
	}
	op.phase(ctx, manifest.PhaseRunning)
	return r.rec, nil
}

// rebuild is the server that is built anew; was is the old one.
type rebuild struct {
	standing
	in RebuildServerIn
}

func (r *rebuild) record(ctx workflow.Context) error {
	if err := r.standing.record(ctx); err != nil {
		return err
	}
	if r.in.Image != "" {
		r.standing.in.Spec.Image = r.in.Image
	}
	r.show(ctx, searchHost.ValueSet(r.host), searchImage.ValueSet(r.standing.in.Spec.Image))
	return nil
}

// addresses asks again for what the server has: the same owner gets the same answer.
func (r *rebuild) addresses(ctx workflow.Context) error {
	out, err := call[ipam.AllocateOut](ctx, r.operation, onControl(quickTimeout), activities.IPAMAllocate,
		ipam.AllocateIn{Server: r.server, NICs: r.standing.in.Spec.NetworkInterface})
	if err != nil {
		return err
	}
	r.ports = out.Ports
	r.detail(ctx, stepAddresses, "%s", strings.Join(addressesOf(r.ports), ", "))
	return nil
}

// newBoot makes the new boot disk while the server still runs from the old one.
func (r *rebuild) newBoot(ctx workflow.Context) error {
	old := bootOf(r.was)
	r.add(stepNewBoot, func(ctx workflow.Context) error { return r.keep(ctx, old.Volume) })
	boot := r.standing.in.Spec.BootVolume
	if boot.Size == 0 {
		boot.Size = max(old.SizeGiB, r.img.VirtualGiB)
	}
	r.detail(ctx, stepNewBoot, "over %s, beside %s", r.standing.in.Spec.Image, old.Volume)
	out, err := call[volume.RebuildOut](ctx, r.operation, onHost(r.host, volumeTimeout), activities.VolumeRebuild,
		volume.RebuildIn{Server: r.server, Image: r.img, Boot: boot, InUse: old.Volume})
	if err != nil {
		return err
	}
	r.disks = append([]manifest.Disk{out.Disk}, dataOf(r.was)...)
	return nil
}

// keep deletes the boot volume that is not in use.
func (r *rebuild) keep(ctx workflow.Context, inUse string) error {
	_, err := call[activities.Nothing](ctx, r.operation, r.at(), activities.VolumeDiscard,
		volume.DiscardIn{Server: r.server, InUse: inUse})
	return err
}

func (r *rebuild) seed(ctx workflow.Context) (err error) {
	if err := r.await(ctx, stepKeys); err != nil {
		return err
	}
	r.add(stepSeed, func(ctx workflow.Context) error { return r.prune(ctx, r.was.Status.Seed) })
	r.detail(ctx, stepSeed, "%d login keys", len(r.authKeys))
	spec := r.standing.in.Spec
	r.seeded, err = call[seed.WriteOut](ctx, r.operation, r.at(), activities.SeedWrite, seed.WriteIn{
		Server: r.server, Hostname: r.server.Name, Auth: spec.Auth, Keys: r.authKeys, Login: r.img.User,
		Ports: r.ports, CloudInit: spec.CloudInit, Rebuild: r.was.Status.Rebuild + 1, Play: r.firstPlay(),
	})
	return err
}

// shutdown powers the old server off. From here on the undo is to run it again.
func (r *rebuild) shutdown(ctx workflow.Context) error {
	r.add(stepShutdown, r.back)
	r.detail(ctx, stepShutdown, "asked to power off, forced after %s", graceOf(rebuildGraceSeconds))
	return r.powerOff(ctx, rebuildGraceSeconds)
}

// back takes the new guest off, as far as there is one, and runs the old one if it ran.
func (r *rebuild) back(ctx workflow.Context) error {
	ctx = putBack(ctx)
	if err := r.powerOff(ctx, 0); err != nil || r.was.Status.Off() {
		return err
	}
	var old manifest.ServerSpec
	if err := readSpec(r.was, &old); err != nil {
		return err
	}
	return r.runAsBefore(ctx, old)
}

func (r *rebuild) start(ctx workflow.Context) error {
	r.detail(ctx, stepDomain, "%d vCPU, %d MiB on %s, CPUs paused", r.standing.in.Spec.CPU, r.standing.in.Spec.Memory, r.host)
	if err := r.ensureNetworks(ctx, r.ports); err != nil {
		return err
	}
	return r.standing.start(ctx, r.startIn())
}

func (r *rebuild) wire(ctx workflow.Context) error {
	r.detail(ctx, stepWire, "%s", strings.Join(wiring(r.server.Name, r.ports), ", "))
	return r.connect(ctx, r.startIn())
}

func (r *rebuild) finish(ctx workflow.Context) error {
	status := r.status(ctx, manifest.PhaseRunning)
	status.Playbook = r.run
	status.Rebuild = r.was.Status.Rebuild + 1
	if r.warning != "" {
		status.Conditions = append(status.Conditions, r.degraded(ctx))
	}
	return r.commit(ctx, status)
}

// discard deletes the old boot disk and seed. The new server stands: no cancel stops it.
func (r *rebuild) discard(ctx workflow.Context) error {
	free, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	free = takeAway(free)
	if err := r.keep(free, bootOf(r.rec).Volume); err != nil {
		return err
	}
	return r.prune(free, r.rec.Status.Seed)
}

// bootOf is a server's boot disk.
func bootOf(rec manifest.Record) manifest.Disk {
	if len(rec.Status.Disks) == 0 {
		return manifest.Disk{}
	}
	return rec.Status.Disks[0]
}

// dataOf are a server's data disks.
func dataOf(rec manifest.Record) []manifest.Disk {
	if len(rec.Status.Disks) == 0 {
		return nil
	}
	return rec.Status.Disks[1:]
}
