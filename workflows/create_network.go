package workflows

import (
	"strings"

	"go.temporal.io/sdk/workflow"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/activities/ipam"
	"burrow.dev/burrow/activities/state"
	"burrow.dev/burrow/manifest"
)

const (
	stepSettle = "settle subnets"
	stepForget = "forget addresses"
)

// CreateNetwork declares a network: its subnets, bridge and names are settled against all
// others. Hosts make it when the first server that is on it is built.
func CreateNetwork(ctx workflow.Context, in CreateNetworkIn) (manifest.Record, error) {
	var rec manifest.Record
	var op *operation
	body := sequence{
		step{stepRecord, func(ctx workflow.Context) (err error) {
			rec, err = op.beginRecord(ctx, state.BeginIn{
				Kind: manifest.KindNetwork, Metadata: in.Metadata, Phase: manifest.PhaseProvisioning, RequestedBy: in.RequestedBy,
			}, in.Spec)
			return err
		}},
		step{stepSettle, func(ctx workflow.Context) error {
			op.add(stepSettle, func(ctx workflow.Context) error {
				_, err := call[activities.Nothing](ctx, op, onControl(quickTimeout), activities.IPAMForgetNetwork,
					ipam.ForgetNetworkIn{Name: in.Metadata.Name, UID: rec.Metadata.UID})
				return err
			})
			out, err := call[ipam.SettleNetworkOut](ctx, op, onControl(quickTimeout), activities.IPAMSettleNetwork,
				ipam.SettleNetworkIn{Name: in.Metadata.Name, UID: rec.Metadata.UID, Spec: in.Spec})
			if err != nil {
				return err
			}
			rec.Status = manifest.Status{Phase: manifest.PhaseReady, Network: &out.Network, ObservedGeneration: rec.Metadata.Generation}
			op.detail(ctx, stepSettle, "%s on %s", strings.Join(cidrs(out.Network), ", "), out.Network.Bridge)
			return nil
		}},
		step{stepFinish, func(ctx workflow.Context) error { return op.finishRecord(ctx, manifest.KindNetwork, rec) }},
	}
	op, err := begin(ctx, NameCreateNetwork, "network/"+in.Metadata.Name, manifest.PhaseProvisioning, body)
	if err != nil {
		return rec, err
	}
	describe(ctx, op, "", in.RequestedBy)
	if err := op.run(ctx, body); err != nil {
		return rec, op.endRecord(ctx, manifest.KindNetwork, in.Metadata.Name, rec.Metadata.UID, err)
	}
	op.phase(ctx, manifest.PhaseReady)
	return rec, nil
}

func cidrs(n manifest.NetworkStatus) []string {
	var all []string
	for _, s := range n.Subnets {
		all = append(all, s.CIDR)
	}
	return all
}
