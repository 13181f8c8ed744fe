package network

import (
	"context"
	"errors"
	"slices"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/ovsx"
	"burrow.dev/burrow/manifest"
)

// Unwire takes a server's ports off the wire: port, flows, guard, name in DNS. Without
// ports in the request, or with ports of which only the network is known: all that carry
// the server's mark. None is success, and a port of
// the same name that is not the server's is not touched.
func (a *Activities) Unwire(ctx context.Context, in UnwireIn) (activities.Nothing, error) {
	ports, err := a.portsToUnwire(ctx, in)
	if err != nil {
		return activities.Nothing{}, err
	}
	// Each port stands alone: one that cannot be had does not keep the others.
	var failed []error
	for _, p := range ports {
		failed = append(failed, a.unwire(ctx, in.Server, p))
	}
	return activities.Nothing{}, errors.Join(failed...)
}

// portsToUnwire adds to the ports asked for those that carry the server's mark and are not
// known to the caller: a NIC that an earlier attempt made.
func (a *Activities) portsToUnwire(ctx context.Context, in UnwireIn) ([]manifest.Port, error) {
	unknown := func(p manifest.Port) bool { return p.Device == "" }
	if len(in.Ports) > 0 && !slices.ContainsFunc(in.Ports, unknown) {
		return in.Ports, nil
	}
	marked, err := a.sw.Ports(ctx, ovsx.KeyServer, in.Server.UID)
	if err != nil {
		return nil, err
	}
	var ports []manifest.Port
	for _, m := range marked {
		ports = append(ports, manifest.Port{
			Name: m.ExternalIDs[ovsx.KeyNIC], NetworkUID: m.ExternalIDs[ovsx.KeyNetwork],
			MAC: m.ExternalIDs[ovsx.KeyAttachedMAC], Device: m.Name,
		})
	}
	return ports, nil
}

func (a *Activities) unwire(ctx context.Context, server activities.Server, p manifest.Port) error {
	unlock, err := a.networks.Lock(ctx, p.NetworkUID)
	if err != nil {
		return err
	}
	defer unlock()
	port, err := a.sw.Port(ctx, p.Device)
	absent := errors.Is(err, errs.ErrNotFound)
	if err != nil && !absent {
		return err
	}
	bridge, ofport := p.Bridge, 0
	if !absent && port.OwnedBy(server.UID, p.MAC) {
		bridge, ofport = port.Bridge, port.OFPort
	}
	failed := []error{a.stack.DropNames(ctx, p.NetworkUID, server.UID)}
	if bridge != "" {
		failed = append(failed, a.sw.DeletePortFlows(ctx, bridge, ofport, ovsx.Cookie(server.UID, p.Name)))
	}
	if absent || port.OwnedBy(server.UID, p.MAC) {
		failed = append(failed, a.stack.Unguard(ctx, p.Device))
	}
	if ofport != 0 || !absent && port.OwnedBy(server.UID, p.MAC) {
		failed = append(failed, a.sw.Transact(ctx, server.Ref(), "unwire "+p.Name, func(tx *ovsx.Tx) { tx.DeletePort(p.Device) }))
	}
	return errors.Join(failed...)
}
