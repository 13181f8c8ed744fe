package workflows

import (
	"encoding/json"

	"go.temporal.io/sdk/workflow"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/activities/ansible"
	"burrow.dev/burrow/activities/domain"
	"burrow.dev/burrow/activities/ipam"
	"burrow.dev/burrow/activities/network"
	"burrow.dev/burrow/activities/place"
	"burrow.dev/burrow/activities/seed"
	"burrow.dev/burrow/activities/state"
	"burrow.dev/burrow/activities/volume"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
)

// DeleteServer takes a server away: the undo list of ProvisionServer. Volumes that are
// records of their own stay. Deleting what is not there is success. A cancel does not stop it.
func DeleteServer(ctx workflow.Context, in DeleteIn) error {
	d := &deletion{in: in}
	body := sequence{
		step{stepRecord, d.record},
		d.parts(),
		step{stepFinish, d.finish},
	}
	op, err := begin(ctx, NameDeleteServer, "server/"+in.Name, manifest.PhaseDeleting, body)
	if err != nil {
		return err
	}
	d.operation = op
	describe(ctx, op, in.Name, in.RequestedBy)
	if err := op.runToEnd(ctx, body); err != nil {
		if d.server.UID != "" {
			err = op.failRecord(ctx, manifest.KindServer, d.rec, err)
		}
		return fail(err)
	}
	return nil
}

// parts takes away all that was made for a server, but for its record.
func (d *deletion) parts() sequence {
	return sequence{
		step{"stop playbook", d.reap},
		step{"remove domain", d.domain},
		step{"unwire OVS", d.unwire},
		step{"remove seed", d.seed},
		together{
			step{"remove volumes", d.volumes},
			step{"release networks", d.networks},
		},
		step{"release addresses", d.addresses},
		step{"release host", d.release},
	}
}

// deletion carries the record of what is being deleted.
type deletion struct {
	*operation
	in     DeleteIn
	rec    manifest.Record
	spec   manifest.ServerSpec
	server activities.Server
}

func (d *deletion) record(ctx workflow.Context) error {
	rec, err := d.beginRecord(ctx, state.BeginIn{
		Kind: manifest.KindServer, Metadata: manifest.Metadata{Name: d.in.Name}, Phase: manifest.PhaseDeleting,
		RequestedBy: d.in.RequestedBy,
	}, nil)
	if err != nil || rec.Metadata.UID == "" {
		return err
	}
	d.rec = rec
	d.server = activities.Server{Name: d.in.Name, UID: rec.Metadata.UID}
	if err := json.Unmarshal(rec.Spec, &d.spec); err != nil {
		return errs.NewPermanent(d.server.Ref(), "read its record", err, "restore the record from a backup")
	}
	return nil
}

// onHost runs an undo on the server's host; a server that never got one has nothing there.
func (d *deletion) onHost(ctx workflow.Context, activity string, in any) error {
	if d.rec.Status.Host == "" {
		d.skip(ctx, currentStep(ctx), "it never reached a host")
		return nil
	}
	_, err := call[activities.Nothing](ctx, d.operation, onHost(d.rec.Status.Host, driverTimeout), activity, in)
	return err
}

// onControl runs an undo on a control worker; a server that is not there has nothing.
func (d *deletion) onControl(ctx workflow.Context, activity string, in any) error {
	if d.server.UID == "" {
		d.skip(ctx, currentStep(ctx), "not there")
		return nil
	}
	_, err := call[activities.Nothing](ctx, d.operation, onControl(quickTimeout), activity, in)
	return err
}

func (d *deletion) reap(ctx workflow.Context) error {
	return d.onHost(ctx, activities.AnsibleReap, ansible.ReapIn{Server: d.server})
}

func (d *deletion) domain(ctx workflow.Context) error {
	return d.onHost(ctx, activities.DomainRemove, domain.RemoveIn{Server: d.server})
}

func (d *deletion) unwire(ctx workflow.Context) error {
	return d.onHost(ctx, activities.NetworkUnwire, network.UnwireIn{Server: d.server, Ports: d.rec.Status.Ports})
}

func (d *deletion) seed(ctx workflow.Context) error {
	return d.onHost(ctx, activities.SeedRemove, seed.RemoveIn{Server: d.server, Secrets: true})
}

func (d *deletion) volumes(ctx workflow.Context) error {
	return d.onHost(ctx, activities.VolumeRemove, volume.RemoveIn{Server: d.server, Storage: ownedStorage(d.spec)})
}

func (d *deletion) networks(ctx workflow.Context) error {
	return d.onHost(ctx, activities.NetworkRelease, network.ReleaseIn{Server: d.server, Ports: d.rec.Status.Ports})
}

func (d *deletion) addresses(ctx workflow.Context) error {
	return d.onControl(ctx, activities.IPAMRelease, ipam.ReleaseIn{Server: d.server, NICs: d.spec.NetworkInterface})
}

func (d *deletion) release(ctx workflow.Context) error {
	if err := d.onControl(ctx, activities.PlaceRelease, place.ReleaseIn{UID: d.server.UID}); err != nil {
		return err
	}
	in := state.VolumesIn{Server: d.server, Names: attachedNames(d.spec)}
	in.All = workflow.GetVersion(ctx, changeDetachAll, workflow.DefaultVersion, 1) == 1
	if len(in.Names) == 0 && !in.All {
		return nil
	}
	_, err := call[state.VolumesOut](ctx, d.operation, onControl(quickTimeout), activities.StateDetachVolumes, in)
	return err
}

// changeDetachAll: an update that is lost after it was written down, and before it gave
// the volume back that it took off, leaves one that the spec does not name.
const changeDetachAll = "detach-all"

func (d *deletion) finish(ctx workflow.Context) error {
	if d.server.UID == "" {
		return nil
	}
	return d.removeRecord(ctx, manifest.KindServer, d.rec)
}
