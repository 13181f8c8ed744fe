package workflows

import (
	"errors"
	"strings"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/activities/ansible"
	"burrow.dev/burrow/activities/domain"
	"burrow.dev/burrow/activities/guest"
	"burrow.dev/burrow/activities/image"
	"burrow.dev/burrow/activities/ipam"
	"burrow.dev/burrow/activities/keys"
	"burrow.dev/burrow/activities/network"
	"burrow.dev/burrow/activities/place"
	"burrow.dev/burrow/activities/seed"
	"burrow.dev/burrow/activities/state"
	"burrow.dev/burrow/activities/volume"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
)

func (p *provision) record(ctx workflow.Context) error {
	p.saga.add(stepRecord, p.forgetAttached)
	rec, err := p.beginRecord(ctx, state.BeginIn{
		Kind: manifest.KindServer, Metadata: p.in.Metadata, Phase: manifest.PhaseProvisioning,
		Bundle: p.in.Bundle, RequestedBy: p.in.RequestedBy,
	}, p.in.Spec)
	if err != nil {
		return err
	}
	p.rec = rec
	p.server = activities.Server{Name: p.in.Metadata.Name, UID: rec.Metadata.UID}
	names := attachedNames(p.in.Spec)
	if len(names) == 0 {
		return nil
	}
	vols, err := call[state.VolumesOut](ctx, p.operation, onControl(quickTimeout), activities.StateAttachVolumes,
		state.VolumesIn{Server: p.server, Names: names})
	p.attached = vols.Records
	return err
}

// forgetAttached undoes the attachments; the record itself ends in failed.
func (p *provision) forgetAttached(ctx workflow.Context) error {
	names := attachedNames(p.in.Spec)
	if p.server.UID == "" || len(names) == 0 {
		return nil
	}
	_, err := call[state.VolumesOut](ctx, p.operation, onControl(quickTimeout), activities.StateDetachVolumes,
		state.VolumesIn{Server: p.server, Names: names})
	return err
}

func (p *provision) place(ctx workflow.Context) error {
	on, err := hostOf(p.attached)
	if err != nil {
		return err
	}
	in := place.In{
		Owner: p.server.Ref(), UID: p.server.UID, CPU: p.in.Spec.CPU, Memory: p.in.Spec.Memory,
		DiskGiB: map[string]int{"": diskNeed(p.in.Spec)}, NodeName: p.in.Metadata.NodeName, OnHost: on,
	}
	if p.in.Spec.Placement != nil {
		in.Selector = p.in.Spec.Placement.Selector
	}
	p.saga.add(stepPlace, func(ctx workflow.Context) error {
		_, err := call[activities.Nothing](ctx, p.operation, onControl(quickTimeout), activities.PlaceRelease,
			place.ReleaseIn{UID: p.server.UID})
		return err
	})
	p.detail(ctx, stepPlace, "%d vCPU, %d MiB, %d GiB", in.CPU, in.Memory, in.DiskGiB[""])
	out, err := call[place.Out](ctx, p.operation, onControl(quickTimeout), activities.PlacePlace, in)
	if err != nil {
		return err
	}
	p.host = out.Host
	p.detail(ctx, stepPlace, "on %s", p.host)
	p.show(ctx, searchHost.ValueSet(p.host))
	return nil
}

func (p *provision) keys(ctx workflow.Context) error {
	auth := p.in.Spec.Auth
	if p.in.Skips(stepKeys) {
		p.skip(ctx, stepKeys, "none declared; burrow's own key logs in")
		return nil
	}
	p.detail(ctx, stepKeys, "%s", strings.Join(auth.URL, ", "))
	out, err := call[keys.FetchOut](ctx, p.operation, onControl(quickTimeout), activities.KeysFetch,
		keys.FetchIn{Owner: p.server.Ref(), URLs: auth.URL, PublicKey: auth.PublicKey})
	p.authKeys = out.Keys
	return err
}

func (p *provision) check(ctx workflow.Context) error {
	if p.in.Skips(stepCheck) {
		p.skip(ctx, stepCheck, p.uncheckable())
		return nil
	}
	p.detail(ctx, stepCheck, "%s", strings.Join(p.in.Spec.Ansible.Playbook, ", "))
	_, err := call[activities.Nothing](ctx, p.operation, checkOn(*p.in.Spec.Ansible), activities.AnsibleCheck,
		ansible.CheckIn{Owner: p.server.Ref(), Bundle: p.in.Bundle, Ansible: *p.in.Spec.Ansible})
	return err
}

// checkOn is where and how long a playbook is checked: what it requires is fetched first.
func checkOn(spec manifest.Ansible) target {
	if spec.Requirements != "" {
		return onControl(checkTimeout + requirementsTimeout)
	}
	return onControl(checkTimeout)
}

func (p *provision) addresses(ctx workflow.Context) error {
	in := ipam.AllocateIn{Server: p.server, NICs: p.in.Spec.NetworkInterface}
	p.saga.add(stepAddresses, func(ctx workflow.Context) error {
		_, err := call[activities.Nothing](ctx, p.operation, onControl(quickTimeout), activities.IPAMRelease, ipam.ReleaseIn(in))
		return err
	})
	p.detail(ctx, stepAddresses, "on %s", strings.Join(networkNames(in.NICs), ", "))
	out, err := call[ipam.AllocateOut](ctx, p.operation, onControl(quickTimeout), activities.IPAMAllocate, in)
	if err != nil {
		return err
	}
	p.ports = out.Ports
	p.detail(ctx, stepAddresses, "%s", strings.Join(addressesOf(p.ports), ", "))
	return nil
}

func (p *provision) image(ctx workflow.Context) (err error) {
	p.detail(ctx, stepImage, "%s on %s", p.in.Spec.Image, p.host)
	p.img, err = call[image.EnsureOut](ctx, p.operation, onHost(p.host, imageTimeout), activities.ImageEnsure,
		image.EnsureIn{Name: p.in.Spec.Image})
	return err
}

func (p *provision) volumes(ctx workflow.Context) error {
	owned := ownedStorage(p.in.Spec)
	p.saga.add(stepVolumes, func(ctx workflow.Context) error {
		_, err := call[activities.Nothing](ctx, p.operation, onHost(p.host, driverTimeout), activities.VolumeRemove,
			volume.RemoveIn{Server: p.server, Storage: owned})
		return err
	})
	p.detail(ctx, stepVolumes, "boot over %s, %d data", p.in.Spec.Image, len(p.in.Spec.Storage))
	out, err := call[volume.BuildOut](ctx, p.operation, onHost(p.host, volumeTimeout), activities.VolumeBuild, volume.BuildIn{
		Server: p.server, Image: p.img, Boot: p.in.Spec.BootVolume, Storage: p.in.Spec.Storage, Attached: p.attached,
	})
	p.disks = out.Disks
	return err
}

func (p *provision) networks(ctx workflow.Context) error {
	p.saga.add(stepNetworks, func(ctx workflow.Context) error {
		_, err := call[activities.Nothing](ctx, p.operation, onHost(p.host, driverTimeout), activities.NetworkRelease,
			network.ReleaseIn{Server: p.server, Ports: p.ports})
		return err
	})
	p.detail(ctx, stepNetworks, "%s", strings.Join(networkNames(p.in.Spec.NetworkInterface), ", "))
	_, err := call[activities.Nothing](ctx, p.operation, onHost(p.host, driverTimeout), activities.NetworkEnsure,
		network.EnsureIn{Server: p.server, Ports: p.ports})
	return err
}

func (p *provision) probe(ctx workflow.Context) error { return p.probePorts(ctx, p.ports) }

func (p *provision) probePorts(ctx workflow.Context, ports []manifest.Port) error {
	p.detail(ctx, stepProbe, "%s", strings.Join(addressesOf(ports), ", "))
	out, err := call[network.ProbeOut](ctx, p.operation, onHost(p.host, driverTimeout), activities.NetworkProbe,
		network.ProbeIn{Server: p.server, Ports: ports})
	if err != nil || len(out.Taken) == 0 {
		return err
	}
	return errs.NewPermanent(p.server.Ref(), "probe addresses",
		errs.Reason("%s answered already: a machine that burrow does not manage uses it", strings.Join(out.Taken, ", ")),
		"reserve the address in the network's spec.subnets[].reserved, then apply again")
}

func (p *provision) seed(ctx workflow.Context) (err error) {
	if err := p.await(ctx, stepKeys); err != nil {
		return err
	}
	p.saga.add(stepSeed, func(ctx workflow.Context) error {
		_, err := call[activities.Nothing](ctx, p.operation, onHost(p.host, driverTimeout), activities.SeedRemove,
			seed.RemoveIn{Server: p.server, Secrets: true})
		return err
	})
	p.detail(ctx, stepSeed, "%d login keys", len(p.authKeys))
	p.seeded, err = call[seed.WriteOut](ctx, p.operation, onHost(p.host, driverTimeout), activities.SeedWrite, seed.WriteIn{
		Server: p.server, Hostname: p.server.Name, Auth: p.in.Spec.Auth, Keys: p.authKeys, Login: p.img.User,
		Ports: p.ports, CloudInit: p.in.Spec.CloudInit, Play: p.firstPlay(),
	})
	return err
}

func (p *provision) domain(ctx workflow.Context) error {
	p.saga.add(stepDomain, func(ctx workflow.Context) error {
		_, err := call[activities.Nothing](ctx, p.operation, onHost(p.host, driverTimeout), activities.DomainRemove,
			domain.RemoveIn{Server: p.server})
		return err
	})
	p.detail(ctx, stepDomain, "%d vCPU, %d MiB on %s, CPUs paused", p.in.Spec.CPU, p.in.Spec.Memory, p.host)
	p.noted = true
	if _, err := call[activities.Nothing](ctx, p.operation, onControl(quickTimeout), activities.StateNote, state.NoteIn{
		Kind: manifest.KindServer, Name: p.server.Name, UID: p.server.UID, Status: p.status(ctx, manifest.PhaseProvisioning),
	}); err != nil {
		return err
	}
	return p.start(ctx, p.startIn())
}

// unnote takes the server out of what its host brings up by itself: a host that starts in
// the middle of the undo would build again, behind its back, what is undone already.
func (p *provision) unnote(ctx workflow.Context) error {
	if !p.noted {
		return nil
	}
	_, err := call[activities.Nothing](ctx, p.operation, onControl(quickTimeout), activities.StateNote, state.NoteIn{
		Kind: manifest.KindServer, Name: p.server.Name, UID: p.server.UID,
		Status: manifest.Status{Host: p.host, Addresses: addressesOf(p.ports)},
	})
	return err
}

func (p *provision) startIn() domain.StartIn {
	return domain.StartIn{
		Server: p.server, CPU: p.in.Spec.CPU, Memory: p.in.Spec.Memory, Disks: p.disks, Ports: p.ports,
		Seed: p.seeded.Path, Firmware: p.in.Spec.Firmware,
	}
}

// wire puts the ports on the wire and lets the guest run.
func (p *provision) wire(ctx workflow.Context) error {
	p.saga.add(stepWire, func(ctx workflow.Context) error {
		_, err := call[activities.Nothing](ctx, p.operation, onHost(p.host, driverTimeout), activities.NetworkUnwire,
			network.UnwireIn{Server: p.server, Ports: p.ports})
		return err
	})
	p.detail(ctx, stepWire, "%s", strings.Join(wiring(p.server.Name, p.ports), ", "))
	return p.letRun(ctx, p.startIn())
}

func (p *provision) ready(ctx workflow.Context) error {
	return p.waitReady(ctx, p.ports, p.in.Spec.Readiness, readyTimeout)
}

func (p *provision) waitReady(ctx workflow.Context, ports []manifest.Port, until manifest.Readiness, most time.Duration) error {
	p.detail(ctx, stepReady, "until %s", until)
	out, err := p.awaitGuest(ctx, p.host, most, guest.WaitReadyIn{
		Server: p.server, Ports: ports, Login: p.seeded.Login, HostKeys: p.seeded.HostKeys, Readiness: until,
	})
	if err == nil {
		p.address, p.warning = out.Address, out.Warning
	}
	return err
}

// awaitGuest waits until a guest is ready, at most that long with all attempts.
func (op *operation) awaitGuest(ctx workflow.Context, host string, most time.Duration, in guest.WaitReadyIn) (guest.WaitReadyOut, error) {
	out, err := call[guest.WaitReadyOut](ctx, op, onHost(host, most).within(most), activities.GuestWaitReady, in)
	if err != nil && ctx.Err() == nil && classOf(err) == errs.Transient { // of all attempts
		return out, errs.NewOperator(in.Server.Ref(), "wait until ready",
			errs.Reason("the guest did not get there in %s%s", most, lastSeen(err)),
			"look at it with `burrow console "+in.Server.Name+"`; is the image made for cloud-init?")
	}
	return out, err
}

// lastSeen says how far a guest was when the time was over, or why nobody could look.
func lastSeen(err error) string {
	var timeout *temporal.TimeoutError
	if !errors.As(err, &timeout) {
		return ": " + reason(err)
	}
	var p guest.Progress
	if timeout.HasLastHeartbeatDetails() && timeout.LastHeartbeatDetails(&p) == nil && p.Stage != "" {
		return "; it was at " + p.Stage
	}
	return ""
}

func (p *provision) finish(ctx workflow.Context) error {
	p.rec.Status = p.status(ctx, manifest.PhaseRunning)
	p.rec.Status.Playbook, p.rec.Status.Bundle = p.run, p.in.Bundle
	p.rec.Status.ObservedGeneration = p.rec.Metadata.Generation
	if p.warning != "" {
		p.rec.Status.Conditions = append(p.rec.Status.Conditions, p.degraded(ctx))
	}
	return p.finishRecord(ctx, manifest.KindServer, p.rec)
}

func (p *provision) degraded(ctx workflow.Context) manifest.Condition {
	return manifest.Condition{Type: "Degraded", Status: true, Reason: "CloudInit", Message: p.warning, Since: workflow.Now(ctx)}
}
