package faults

import (
	"context"

	"go.temporal.io/sdk/client"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/manifest"
	"burrow.dev/burrow/workflows"
)

// Worlds before and after NICs and processors change under a running guest.
const (
	worldOneNIC  = "a running server with one NIC"
	worldPlugged = "a running server with a NIC that was plugged in"
)

// oneNIC leaves the second NIC out.
func oneNIC(spec *manifest.ServerSpec) { spec.NetworkInterface = spec.NetworkInterface[:1] }

func everyNIC(*manifest.ServerSpec) {}

// built builds the subject's server from a changed manifest.
func built(change func(*manifest.ServerSpec)) func(context.Context, *subject) error {
	return func(ctx context.Context, c *subject) error {
		return c.well(ctx, func(ctx context.Context, c *subject) (client.WorkflowRun, error) {
			in, err := c.provisionIn(ctx)
			if err != nil {
				return nil, err
			}
			change(&in.Spec)
			return c.begin(ctx, c.ref(), workflows.NameProvisionServer, in)
		})
	}
}

// plugging are changes under a guest that runs on. Their guests have no operating system:
// they take what is plugged in and give nothing back.
func plugging() []operation {
	prune := place{step: "release NICs (seed)", activity: activities.SeedPrune, settled: true, leaves: true}
	return []operation{
		{
			name: "plug a NIC into a running server", kind: manifest.KindServer, from: worldOneNIC, ends: worldPlugged, holds: true,
			prepare: built(oneNIC), start: updated(false, everyNIC),
			steps: []place{
				atBegin,
				{step: "allocate addresses", activity: activities.IPAMAllocate},
				{step: "ensure networks", activity: activities.NetworkEnsure},
				{step: "probe addresses", activity: activities.NetworkProbe},
				{step: "write seed", activity: activities.SeedReaddress},
				{step: "plug in NICs (definition)", activity: activities.DomainRedefine},
				{step: "plug in NICs", activity: activities.DomainPlugNICs, plugs: true},
				{step: "plug in NICs (wire)", activity: activities.NetworkWire, plugged: true},
				{step: "plug in NICs (seed)", activity: activities.DomainInsertSeed, plugged: true},
				{step: atEnd.step, activity: atEnd.activity, atomic: true, plugged: true},
				prune,
			},
		},
	}
}
