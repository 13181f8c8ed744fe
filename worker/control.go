package worker

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"golang.org/x/sync/errgroup"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/activities/ansible"
	"burrow.dev/burrow/activities/ipam"
	"burrow.dev/burrow/activities/keys"
	"burrow.dev/burrow/activities/lost"
	"burrow.dev/burrow/activities/place"
	"burrow.dev/burrow/activities/state"
	"burrow.dev/burrow/activities/sweep"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/etcdstate"
	"burrow.dev/burrow/manifest"
	"burrow.dev/burrow/workflows"
)

// runControl runs the control role until ctx ends.
func runControl(ctx context.Context, p *parts) error {
	keyActivities, err := keys.New(keys.Options{
		AllowHTTP: p.Config.Keys.AllowHTTP, AllowPrivate: p.Config.Keys.AllowPrivate, RootCAFile: p.Config.Keys.CA,
	})
	if err != nil {
		return err
	}
	runs, err := p.ansible(nil, nil)
	if err != nil {
		return err
	}
	w := p.newWorker(activities.ControlQueue, controlWide, controlActivities(
		state.New(p.store, p.temporal), place.New(p.store), keyActivities, ipam.New(p.store, p.pool), runs,
		sweep.NewControl(p.store, p.pool, p.secrets, p.temporal), lost.New(p.store, p.temporal)))
	registerWorkflows(w)
	if err := w.Start(); err != nil {
		return errs.NewTransient("queue "+activities.ControlQueue, "poll", err)
	}
	defer w.Stop()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return declareHostBridge(ctx, p) })
	group.Go(func() error {
		p.store.Lead(ctx, controlLeader, candidate(p.Config.Host.Name), func(ctx context.Context, term *etcdstate.Term) error {
			return watchHosts(ctx, p.store, term, p.Log)
		})
		return nil
	})
	group.Go(func() error { return keepSchedules(ctx, p) })
	group.Go(func() error { <-ctx.Done(); return nil })
	return group.Wait()
}

func controlActivities(s *state.Activities, p *place.Activities, k *keys.Activities, i *ipam.Activities, a *ansible.Activities, sw *sweep.Control, l *lost.Activities) map[string]any {
	return map[string]any{
		activities.StateBegin:         s.Begin,
		activities.StateFinish:        s.Finish,
		activities.StateFail:          s.Fail,
		activities.StateHold:          s.Hold,
		activities.StateNote:          s.Note,
		activities.StateRemove:        s.Remove,
		activities.StateLook:          s.Look,
		activities.StateAwaitClosed:   s.AwaitClosed,
		activities.StateAdopt:         s.Adopt,
		activities.StateTargets:       s.Targets,
		activities.StateAttachVolumes: s.AttachVolumes,
		activities.StateDetachVolumes: s.DetachVolumes,
		activities.PlacePlace:         p.Place,
		activities.PlaceRelease:       p.Release,
		activities.PlaceResize:        p.Resize,
		activities.KeysFetch:          k.Fetch,
		activities.IPAMAllocate:       i.Allocate,
		activities.IPAMRelease:        i.Release,
		activities.IPAMSettleNetwork:  i.SettleNetwork,
		activities.IPAMForgetNetwork:  i.ForgetNetwork,
		activities.AnsibleCheck:       a.Check,
		activities.SweepUnfinished:    sw.Unfinished,
		activities.SweepLookState:     sw.LookState,
		activities.SweepJudge:         sw.Judge,
		activities.SweepClearState:    sw.ClearState,
		activities.LostDeclare:        l.Declare,
		activities.LostTell:           l.Tell,
		activities.LostAsk:            l.Ask,
		activities.LostOwe:            l.Owe,
	}
}

// declareEvery is how often the declaration of host-bridge is tried again while etcd or
// Temporal are not there yet.
const declareEvery = 2 * time.Second

// declareHostBridge declares the network that every manifest may name, as a NAT network,
// where the operator has declared none: so the guide's manifest builds anywhere.
func declareHostBridge(ctx context.Context, p *parts) error {
	tick := time.NewTicker(declareEvery)
	defer tick.Stop()
	for {
		err := tryHostBridge(ctx, p)
		if err == nil || ctx.Err() != nil {
			return nil
		}
		p.Log.Warn("network host-bridge not declared yet", slog.Any("error", err))
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func tryHostBridge(ctx context.Context, p *parts) error {
	_, err := p.store.Get(ctx, manifest.KindNetwork, manifest.HostBridge)
	if !errors.Is(err, errs.ErrNotFound) {
		return err
	}
	subnet, err := freeSubnet()
	if err != nil {
		return err
	}
	in := workflows.CreateNetworkIn{
		Metadata: manifest.Metadata{Name: manifest.HostBridge, Comment: "NAT network of this machine, declared by burrow up"},
		Spec: manifest.NetworkSpec{
			Subnets: []manifest.Subnet{{CIDR: subnet.String(), Gateway: subnet.Addr().Next().String()}},
			Mode:    manifest.ModeNAT, MTU: manifest.DefaultMTU, PortSecurity: true,
			DNS: manifest.DNS{Domain: manifest.HostBridge},
		},
		RequestedBy: "burrow up",
	}
	run, err := p.temporal.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: manifest.Ref(manifest.KindNetwork, manifest.HostBridge), TaskQueue: activities.ControlQueue,
		WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
		WorkflowIDReusePolicy:    enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		StaticSummary:            "declare host-bridge as a NAT network",
	}, workflows.NameCreateNetwork, in)
	if err != nil {
		return err
	}
	return run.Get(ctx, nil)
}

// freeSubnet is a /24 that the machine itself has no address or route in. 172.16.200.0 to
// 172.16.249.0 lie beside the range that networks without a subnet get theirs from.
func freeSubnet() (netip.Prefix, error) {
	taken, err := machinePrefixes()
	if err != nil {
		return netip.Prefix{}, err
	}
	for i := byte(200); i < 250; i++ {
		candidate := netip.PrefixFrom(netip.AddrFrom4([4]byte{172, 16, i, 0}), 24)
		free := true
		for _, t := range taken {
			free = free && !t.Overlaps(candidate)
		}
		if free {
			return candidate, nil
		}
	}
	return netip.Prefix{}, errs.NewOperator("network/"+manifest.HostBridge, "choose its subnet",
		errs.Reason("172.16.200.0 to 172.16.249.0 are all in use on this machine"), "declare host-bridge yourself: kind Network, name host-bridge")
}
