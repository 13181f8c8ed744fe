package workflows

import (
	"go.temporal.io/sdk/workflow"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/activities/place"
	"burrow.dev/burrow/activities/state"
	"burrow.dev/burrow/activities/volume"
	"burrow.dev/burrow/manifest"
)

const stepVolume = "create volume"

// CreateVolume makes a volume that is a resource of its own: it outlives the servers that
// it is attached to.
func CreateVolume(ctx workflow.Context, in CreateVolumeIn) (manifest.Record, error) {
	var rec manifest.Record
	var op *operation
	var host string
	ref := "volume/" + in.Metadata.Name
	body := sequence{
		step{stepRecord, func(ctx workflow.Context) (err error) {
			rec, err = op.beginRecord(ctx, state.BeginIn{
				Kind: manifest.KindVolume, Metadata: in.Metadata, Phase: manifest.PhaseProvisioning, RequestedBy: in.RequestedBy,
			}, in.Spec)
			return err
		}},
		step{stepPlace, func(ctx workflow.Context) error {
			op.add(stepPlace, func(ctx workflow.Context) error {
				_, err := call[activities.Nothing](ctx, op, onControl(quickTimeout), activities.PlaceRelease,
					place.ReleaseIn{UID: rec.Metadata.UID})
				return err
			})
			out, err := call[place.Out](ctx, op, onControl(quickTimeout), activities.PlacePlace, place.In{
				Owner: ref, UID: rec.Metadata.UID, DiskGiB: map[string]int{"": in.Spec.Size}, NodeName: in.Metadata.NodeName,
			})
			host = out.Host
			op.detail(ctx, stepPlace, "%d GiB on %s", in.Spec.Size, host)
			return err
		}},
		step{stepVolume, func(ctx workflow.Context) error {
			op.add(stepVolume, func(ctx workflow.Context) error {
				_, err := call[activities.Nothing](ctx, op, onHost(host, driverTimeout), activities.VolumeDelete,
					volume.DeleteIn{Name: in.Metadata.Name, UID: rec.Metadata.UID})
				return err
			})
			op.detail(ctx, stepVolume, "%d GiB %s on %s", in.Spec.Size, in.Spec.Type, host)
			out, err := call[volume.CreateOut](ctx, op, onHost(host, volumeTimeout), activities.VolumeCreate,
				volume.CreateIn{Name: in.Metadata.Name, UID: rec.Metadata.UID, Spec: in.Spec})
			rec.Status = manifest.Status{
				Phase: manifest.PhaseReady, Host: host, Volume: &out.Volume, ObservedGeneration: rec.Metadata.Generation,
			}
			return err
		}},
		step{stepFinish, func(ctx workflow.Context) error { return op.finishRecord(ctx, manifest.KindVolume, rec) }},
	}
	op, err := begin(ctx, NameCreateVolume, ref, manifest.PhaseProvisioning, body)
	if err != nil {
		return rec, err
	}
	op.known = func(workflow.Context) manifest.Status { return manifest.Status{Host: host} }
	describe(ctx, op, "", in.RequestedBy)
	if err := op.run(ctx, body); err != nil {
		return rec, op.endRecord(ctx, manifest.KindVolume, in.Metadata.Name, rec.Metadata.UID, err)
	}
	op.phase(ctx, manifest.PhaseReady)
	return rec, nil
}
