package workflows

import (
	"go.temporal.io/sdk/workflow"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/activities/image"
	"burrow.dev/burrow/manifest"
)

// DeleteImage deletes an image from the library and from the hosts' pools. One that a
// server's disk still needs is refused, and named.
func DeleteImage(ctx workflow.Context, in DeleteIn) error {
	r := &removal{kind: manifest.KindImage, in: in}
	body := sequence{
		step{stepRecord, r.record},
		step{"delete image", func(ctx workflow.Context) error {
			if r.missing() || r.rec.Status.Image == nil {
				return nil
			}
			for _, host := range r.rec.Status.Image.Hosts {
				if _, err := call[activities.Nothing](ctx, r.operation, onHost(host, driverTimeout), activities.ImageRemove,
					image.RemoveIn{Name: in.Name, SHA256: r.rec.Status.Image.SHA256}); err != nil {
					return err
				}
			}
			return nil
		}},
		step{stepFinish, r.finish},
	}
	return r.runAs(ctx, NameDeleteImage, "image/"+in.Name, body)
}
