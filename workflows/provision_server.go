package workflows

import (
	"go.temporal.io/sdk/workflow"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/activities/image"
	"burrow.dev/burrow/activities/seed"
	"burrow.dev/burrow/activities/state"
	"burrow.dev/burrow/manifest"
)

// Steps of ProvisionServer, as users see them.
const (
	stepRecord    = "record"
	stepPlace     = "place"
	stepKeys      = "fetch auth keys"
	stepCheck     = "check playbook"
	stepAddresses = "allocate addresses"
	stepImage     = "ensure image"
	stepVolumes   = "build volumes"
	stepNetworks  = "ensure networks"
	stepProbe     = "probe addresses"
	stepSeed      = "write seed"
	stepDomain    = "define and start"
	stepWire      = "wire OVS"
	stepReady     = "wait until ready"
	stepPlaybook  = "run playbook"
	stepFinish    = "finish"
)

// ProvisionServer builds a server. It ends Running, or Failed with its reason and
// nothing left behind, or waits Held for a person.
func ProvisionServer(ctx workflow.Context, in ProvisionServerIn) (manifest.Record, error) {
	p := &provision{in: in}
	body := sequence{
		step{stepRecord, p.record},
		step{stepPlace, p.place},
		headStart{inputsHeadStart, []step{
			{stepKeys, p.keys},
			{stepCheck, p.check},
		}},
		together{
			step{stepAddresses, p.addresses},
			step{stepImage, p.image},
		},
		together{
			step{stepVolumes, p.volumes},
			step{stepNetworks, p.networks},
		},
		step{stepProbe, p.probe},
		step{stepSeed, p.seed},
		step{stepDomain, p.domain},
		step{stepWire, p.wire},
		step{stepReady, p.ready},
		step{stepPlaybook, p.playbook},
		step{stepFinish, p.finish},
	}
	op, err := begin(ctx, NameProvisionServer, "server/"+in.Metadata.Name, manifest.PhaseProvisioning, body)
	if err != nil {
		return manifest.Record{}, err
	}
	p.operation = op
	op.onFailure, op.recordHold = p.policy, p.holdRecord
	op.beforeUndo = p.unnote
	op.known = func(ctx workflow.Context) manifest.Status { return p.status(ctx, manifest.PhaseFailed) }
	if err := op.listen(ctx, stepPlaybook, p.revise); err != nil {
		return manifest.Record{}, err
	}
	describe(ctx, op, in.Metadata.Name, in.RequestedBy,
		searchCPU.ValueSet(int64(in.Spec.CPU)), searchMemory.ValueSet(int64(in.Spec.Memory)), searchImage.ValueSet(in.Spec.Image))
	op.limit(ctx, in.Spec.Deadline)
	if err := op.run(ctx, body); err != nil {
		return manifest.Record{}, p.failed(ctx, err)
	}
	op.phase(ctx, p.rec.Status.Phase)
	return p.rec, nil
}

// provision carries what one step found to the next.
type provision struct {
	*operation
	in       ProvisionServerIn
	server   activities.Server
	rec      manifest.Record
	attached []manifest.Record
	host     string
	authKeys []string
	img      image.EnsureOut
	ports    []manifest.Port
	disks    []manifest.Disk
	seeded   seed.WriteOut
	noted    bool // the host may bring the server up by itself
	address  string
	warning  string
	run      *manifest.PlaybookStatus

	begunPlay string // a run in the guest that nobody has waited for yet
	plays     int    // runs in the guest that the operation began after its boot
}

// status is what is known of the server so far.
func (p *provision) status(ctx workflow.Context, phase manifest.Phase) manifest.Status {
	return manifest.Status{
		Phase: phase, Host: p.host, Addresses: addressesOf(p.ports), Ports: p.ports, Disks: p.disks,
		Seed: p.seeded.Path, Login: p.seeded.Login, HostKeys: p.seeded.HostKeys, Bundle: p.in.Bundle,
	}
}

func (p *provision) policy(name string) manifest.OnFailure {
	if name == stepPlaybook && p.in.Spec.Ansible != nil {
		if p.in.Spec.Ansible.OnFailure == "" {
			return manifest.OnFailureHold
		}
		return p.in.Spec.Ansible.OnFailure
	}
	return p.in.Spec.OnFailure
}

func (p *provision) holdRecord(ctx workflow.Context, message string) error {
	status := p.status(ctx, p.going)
	op := currentOperation(ctx, p.Progress.Operation)
	op.Step = p.heldStep
	status.Operation = &op
	_, err := call[activities.Nothing](ctx, p.operation, onControl(quickTimeout), activities.StateHold, state.HoldIn{
		Kind: manifest.KindServer, Name: p.server.Name, UID: p.server.UID, Message: message, Status: status, Going: p.going,
	})
	return err
}

// revise takes what a retry brought: an edited playbook.
func (p *provision) revise(in RetryIn) {
	if in.Bundle != "" {
		p.in.Bundle = in.Bundle
		if a := p.in.Spec.Ansible; a != nil {
			a.Source = a.Source.Edited()
		}
	}
	if in.Ansible != nil {
		p.in.Spec.Ansible = in.Ansible
	}
}

// failed ends the record: gone when it was cancelled, Failed with its reason otherwise.
func (p *provision) failed(ctx workflow.Context, cause error) error {
	return p.operation.endRecord(ctx, manifest.KindServer, p.server.Name, p.server.UID, cause)
}
