package workflows

import (
	"strings"

	"go.temporal.io/sdk/workflow"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/activities/place"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
)

// Steps of UpdateServer that only it has.
const (
	stepResize = "resize reservation"
	stepPlug   = "plug in disks"
	stepGrow   = "grow disks"
	stepDetach = "detach volumes"
)

// UpdateServer makes a server that stands as declared, in the smallest steps: what only the
// record says is written down, disks and NICs are plugged in and disks grow under the
// running guest, NICs are unplugged, a changed playbook runs again; processors come at once
// where the guest takes them, memory with the next restart, which in.Restart brings about.
// What cannot be changed is refused before anything is touched.
// Given up, cancelled or failed, the server is as it was; but a disk that has grown stays
// as large.
func UpdateServer(ctx workflow.Context, in UpdateServerIn) (manifest.Record, error) {
	u := &update{in: in}
	u.standing.in = in.ProvisionServerIn
	body := sequence{
		step{stepRecord, u.record},
		step{stepCheck, u.only(stepCheck, u.plays, u.check)},
		step{stepResize, u.only(stepResize, u.resizes, u.resize)},
		optional{step{stepAddresses, u.addresses}, u.changesNICs},
		step{stepVolumes, u.only(stepVolumes, u.adds, u.volumes)},
		optional{step{stepNetworks, u.networks}, u.addsNICs},
		optional{step{stepProbe, u.probeNICs}, u.addsNICs},
		optional{step{stepSeed, u.readdress}, u.changesNICs},
		step{stepShutdown, u.only(stepShutdown, u.restarts, u.shutdown)},
		step{stepDomain, u.only(stepDomain, u.restarts, u.start)},
		step{stepWire, u.only(stepWire, u.restarts, u.wire)},
		step{stepPlug, u.only(stepPlug, u.plugs, u.plug)},
		optional{step{stepPlugNICs, u.plugNICs}, u.plugsNICs},
		optional{step{stepFit, u.fit}, u.fits},
		step{stepGrow, u.only(stepGrow, u.grows, u.grow)},
		step{stepReady, u.only(stepReady, u.awaits, u.ready)},
		step{stepPlaybook, u.only(stepPlaybook, u.plays, u.playbook)},
		optional{step{stepUnplugNICs, u.unplugNICs}, u.unplugsNICs},
		step{stepFinish, u.finish},
		step{stepDetach, u.only(stepDetach, u.drops, u.detach)},
		optional{step{stepReleaseNICs, u.releaseNICs}, u.changesNICs},
	}
	op, err := begin(ctx, NameUpdateServer, "server/"+in.Metadata.Name, manifest.PhaseUpdating, body)
	if err != nil {
		return manifest.Record{}, err
	}
	u.operation = op
	op.onFailure, op.recordHold, op.beforeUndo = u.policy, u.holdRecord, u.unhold
	if err := op.listen(ctx, stepPlaybook, u.revise); err != nil {
		return manifest.Record{}, err
	}
	describe(ctx, op, in.Metadata.Name, in.RequestedBy,
		searchCPU.ValueSet(int64(in.Spec.CPU)), searchMemory.ValueSet(int64(in.Spec.Memory)))
	if err := op.run(ctx, body); err != nil {
		return manifest.Record{}, fail(err)
	}
	op.phase(ctx, u.rec.Status.Phase)
	return u.rec, nil
}

// update is the server that changes; was is what it was, standing.in what it becomes.
type update struct {
	standing
	in       UpdateServerIn
	old      manifest.ServerSpec
	change   manifest.ServerChange
	restart  bool // the guest is restarted
	added    []manifest.Disk
	attached []manifest.Record

	unfit  bool     // the guest has not the processors and memory that are declared
	unable []string // NICs that the guest did not give back
}

// only skips a step that this change has no need of.
func (u *update) only(name string, needed func() bool, do func(workflow.Context) error) func(workflow.Context) error {
	return func(ctx workflow.Context) error {
		if !needed() {
			u.skip(ctx, name, "not needed")
			return nil
		}
		return do(ctx)
	}
}

func (u *update) plays() bool    { return u.change.Playbook }
func (u *update) grows() bool    { return len(u.change.Grow) > 0 }
func (u *update) adds() bool     { return len(u.change.AddDisks) > 0 }
func (u *update) drops() bool    { return len(u.change.DropDisks) > 0 }
func (u *update) restarts() bool { return u.restart }
func (u *update) plugs() bool    { return u.adds() && !u.restart }
func (u *update) resizes() bool  { return u.change.Machine || u.adds() || u.grows() }
func (u *update) awaits() bool   { return u.restart || u.plays() }

// record makes the record the operation's, and has it decided what there is to change: by
// an activity, so that the answer stays what it was when a later version knows more fields.
func (u *update) record(ctx workflow.Context) error {
	doc := Document{Update: &u.in}
	declared, err := doc.Declared(u.in.Restart)
	if err != nil {
		return err
	}
	decision, err := u.recordFor(ctx, &declared)
	if err != nil {
		return err
	}
	u.old = u.standing.in.Spec
	u.standing.in.Metadata, u.standing.in.Spec, u.standing.in.Bundle = u.in.Metadata, u.in.Spec, u.in.Bundle
	switch {
	case decision.Change != nil:
		u.change = *decision.Change
	case !decision.Stands:
		return errs.NewPermanent(u.server.Ref(), "update", errs.Reason("its record's worker does not say what there is to change"), "use one version of burrow on all workers, then apply again")
	}
	u.unfit = u.change.Machine // until the guest is asked
	u.restart = u.in.Restart && !u.off && (u.change.Machine || u.adds() || u.drops() || u.change.NICs())
	var fields []string
	for _, e := range u.change.Effects {
		fields = append(fields, e.Field)
	}
	u.detail(ctx, stepRecord, "%s", strings.Join(fields, ", "))
	u.show(ctx, searchHost.ValueSet(u.host))
	return nil
}

// resize reserves what the server takes from now on, and gives back what it does not.
func (u *update) resize(ctx workflow.Context) error {
	u.add(stepResize, func(ctx workflow.Context) error { return u.reserve(ctx, u.old) })
	u.detail(ctx, stepResize, "%d vCPU, %d MiB, %d GiB on %s", u.in.Spec.CPU, u.in.Spec.Memory, diskNeed(u.in.Spec), u.host)
	return u.reserve(ctx, u.in.Spec)
}

func (u *update) reserve(ctx workflow.Context, spec manifest.ServerSpec) error {
	_, err := call[activities.Nothing](ctx, u.operation, onControl(quickTimeout), activities.PlaceResize, place.ResizeIn{
		Owner: u.server.Ref(), UID: u.server.UID, CPU: spec.CPU, Memory: spec.Memory, DiskGiB: map[string]int{"": diskNeed(spec) + overgrown(spec, u.was.Status.Disks)},
	})
	return err
}

func (u *update) shutdown(ctx workflow.Context) error {
	u.add(stepShutdown, u.back)
	u.detail(ctx, stepShutdown, "asked to power off, forced after %s", graceOf(updateGraceSeconds))
	return u.powerOff(ctx, updateGraceSeconds)
}

// back runs the server again as it was.
func (u *update) back(ctx workflow.Context) error {
	ctx = putBack(ctx)
	if err := u.powerOff(ctx, 0); err != nil {
		return err
	}
	return u.runAsBefore(ctx, u.old)
}

func (u *update) start(ctx workflow.Context) error {
	u.disks = u.disksNow()
	u.detail(ctx, stepDomain, "%d vCPU, %d MiB, %d disks, CPUs paused", u.in.Spec.CPU, u.in.Spec.Memory, len(u.disks))
	if err := u.ensureNetworks(ctx, u.ports); err != nil {
		return err
	}
	return u.standing.start(ctx, u.startIn())
}

func (u *update) wire(ctx workflow.Context) error {
	u.detail(ctx, stepWire, "%s", strings.Join(wiring(u.server.Name, u.ports), ", "))
	return u.connect(ctx, u.startIn())
}

// ready waits for a guest that was restarted as for a new one, and for one that ran on
// until it can be logged in to.
func (u *update) ready(ctx workflow.Context) error {
	if u.restart {
		return u.standing.ready(ctx)
	}
	// Over a NIC that it knows already.
	return u.waitReady(ctx, u.stayingPorts(), manifest.ReadinessSSH, reachTimeout)
}

func (u *update) finish(ctx workflow.Context) error {
	u.disks = u.disksNow()
	for _, g := range u.change.Grow {
		for i := range u.disks {
			if u.disks[i].Owned && u.disks[i].Name == g.Disk {
				u.disks[i].SizeGiB = max(u.disks[i].SizeGiB, g.GiB)
			}
		}
	}
	rec := u.settled(u.was)
	status := u.current()
	status.Operation, status.Phase, status.Bundle = nil, rec.Status.Phase, u.standing.in.Bundle
	if u.run != nil {
		status.Playbook = u.run
	}
	status.Conditions = finished(u.conditions(ctx))
	return u.commit(ctx, status)
}
