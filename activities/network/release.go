package network

import (
	"context"
	"fmt"
	"strings"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/ovsx"
	"burrow.dev/burrow/manifest"
)

// Release drops the server's references; the last reference to a network on this host
// takes the network down here. None is success.
func (a *Activities) Release(ctx context.Context, in ReleaseIn) (activities.Nothing, error) {
	for _, p := range firstOfEach(in.Ports) {
		if err := a.releaseFor(ctx, in.Server, p); err != nil {
			return activities.Nothing{}, err
		}
	}
	return activities.Nothing{}, nil
}

func (a *Activities) releaseFor(ctx context.Context, server activities.Server, p manifest.Port) error {
	unlock, err := a.networks.Lock(ctx, p.NetworkUID)
	if err != nil {
		return err
	}
	defer unlock()
	remaining, err := a.records.DropReference(ctx, p.NetworkUID, a.host, server.UID)
	if err != nil {
		return fmt.Errorf("drop the reference to network/%s: %w", p.Network, err)
	}
	if remaining > 0 {
		return a.stack.DropNames(ctx, p.NetworkUID, server.UID)
	}
	return a.takeDown(ctx, p.NetworkUID)
}

// Remove takes a whole network down on this host. None is success.
//
// A network that servers on this host refer to → Permanent, with their names.
func (a *Activities) Remove(ctx context.Context, in RemoveIn) (activities.Nothing, error) {
	unlock, err := a.networks.Lock(ctx, in.UID)
	if err != nil {
		return activities.Nothing{}, err
	}
	defer unlock()
	users, err := a.records.References(ctx, in.UID, a.host)
	if err != nil {
		return activities.Nothing{}, err
	}
	if len(users) > 0 {
		return activities.Nothing{}, errs.NewPermanent("network/"+in.Name, "take it down on host "+a.host,
			fmt.Errorf("%w: used by %s", errs.ErrBusy, strings.Join(a.serverNames(ctx, users), ", ")), "delete these servers first")
	}
	return activities.Nothing{}, a.takeDown(ctx, in.UID)
}

// serverNames gives servers as users name them; one without a record by its uid.
func (a *Activities) serverNames(ctx context.Context, uids []string) []string {
	byUID := map[string]string{}
	records, err := a.records.List(ctx, manifest.KindServer)
	if err == nil {
		for _, rec := range records {
			byUID[rec.Metadata.UID] = "server/" + rec.Metadata.Name
		}
	}
	var names []string
	for _, uid := range uids {
		if name := byUID[uid]; name != "" {
			names = append(names, name)
		} else {
			names = append(names, "server uid "+uid)
		}
	}
	return names
}

// takeDown removes what carries the network's mark on this host; whoever calls holds its
// lock. Bridges go first: Open vSwitch complains of ports whose device vanishes.
func (a *Activities) takeDown(ctx context.Context, uid string) error {
	object, action := "network "+uid, "take its bridge down"
	bridges, err := a.sw.Bridges(ctx, ovsx.KeyNetwork, uid)
	if err != nil {
		return err
	}
	err = a.sw.Transact(ctx, object, action, func(tx *ovsx.Tx) {
		for _, b := range bridges {
			tx.DeleteBridge(b.Name)
		}
	})
	if err != nil {
		return err
	}
	return a.stack.Remove(ctx, uid)
}

// Probe asks whether a stranger answers for an address. On networks whose addresses are
// all ours (nat, isolated) nobody else can be there.
func (a *Activities) Probe(ctx context.Context, in ProbeIn) (ProbeOut, error) {
	for _, p := range firstOfEach(in.Ports) {
		rec, err := a.settled(ctx, p)
		if err != nil {
			return ProbeOut{}, err
		}
		if mode := rec.Status.Network.Mode; mode != manifest.ModeNAT && mode != manifest.ModeIsolated {
			return ProbeOut{}, errs.NewPermanent("network/"+p.Network, "probe addresses", errs.Reason("mode %q is not built by this version", mode), "use mode nat or isolated")
		}
	}
	return ProbeOut{}, nil
}
