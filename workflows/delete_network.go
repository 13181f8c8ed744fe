package workflows

import (
	"go.temporal.io/sdk/workflow"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/activities/ipam"
	"burrow.dev/burrow/manifest"
)

// DeleteNetwork forgets a network that no server is on. Its hosts took it down when their
// last server left it. One in use is refused with its users, and stays as it was.
func DeleteNetwork(ctx workflow.Context, in DeleteIn) error {
	r := &removal{kind: manifest.KindNetwork, in: in}
	body := sequence{
		step{stepRecord, r.record},
		step{stepForget, func(ctx workflow.Context) error {
			if r.missing() {
				return nil
			}
			return r.destroy(ctx, onControl(quickTimeout), activities.IPAMForgetNetwork,
				ipam.ForgetNetworkIn{Name: in.Name, UID: r.rec.Metadata.UID})
		}},
		step{stepFinish, r.finish},
	}
	return r.runAs(ctx, NameDeleteNetwork, "network/"+in.Name, body)
}
