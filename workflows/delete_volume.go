package workflows

import (
	"go.temporal.io/sdk/workflow"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/activities/place"
	"burrow.dev/burrow/activities/volume"
	"burrow.dev/burrow/manifest"
)

// DeleteVolume deletes a volume and its data. One that is attached is refused by the first step.
func DeleteVolume(ctx workflow.Context, in DeleteIn) error {
	r := &removal{kind: manifest.KindVolume, in: in}
	body := sequence{
		step{stepRecord, r.record},
		step{"delete volume", func(ctx workflow.Context) error {
			if r.missing() || r.rec.Status.Host == "" {
				return nil
			}
			return r.destroy(ctx, onHost(r.rec.Status.Host, driverTimeout), activities.VolumeDelete,
				volume.DeleteIn{Name: in.Name, UID: r.rec.Metadata.UID})
		}},
		step{"release host", func(ctx workflow.Context) error {
			if r.missing() {
				return nil
			}
			_, err := call[activities.Nothing](ctx, r.operation, onControl(quickTimeout), activities.PlaceRelease,
				place.ReleaseIn{UID: r.rec.Metadata.UID})
			return err
		}},
		step{stepFinish, r.finish},
	}
	return r.runAs(ctx, NameDeleteVolume, "volume/"+in.Name, body)
}
