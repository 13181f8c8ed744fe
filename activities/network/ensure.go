package network

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"strconv"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/hostnet"
	"burrow.dev/burrow/internal/ovsx"
	"burrow.dev/burrow/manifest"
)

// Ensure makes the networks of a server's ports stand on this host, and holds a reference
// to each for the server.
//
// Permanent: a network that is gone or was made anew, a mode that this version does not
// build, a bridge, namespace or device of the same name that burrow did not make.
func (a *Activities) Ensure(ctx context.Context, in EnsureIn) (activities.Nothing, error) {
	for _, p := range firstOfEach(in.Ports) {
		if err := a.ensureFor(ctx, in.Server, p); err != nil {
			return activities.Nothing{}, err
		}
	}
	return activities.Nothing{}, nil
}

// firstOfEach gives one port of each network, in order.
func firstOfEach(ports []manifest.Port) []manifest.Port {
	seen := map[string]bool{}
	var first []manifest.Port
	for _, p := range ports {
		if !seen[p.NetworkUID] {
			seen[p.NetworkUID] = true
			first = append(first, p)
		}
	}
	return first
}

// ensureFor takes the reference before anything is built, so that nobody takes down what
// is being built, and a release always finds what it has to drop.
func (a *Activities) ensureFor(ctx context.Context, server activities.Server, p manifest.Port) error {
	unlock, err := a.networks.Lock(ctx, p.NetworkUID)
	if err != nil {
		return err
	}
	defer unlock()
	rec, err := a.settled(ctx, p)
	if err != nil {
		return err
	}
	if err := a.records.AddReference(ctx, p.NetworkUID, a.host, server.UID); err != nil {
		return fmt.Errorf("refer to network/%s: %w", p.Network, err)
	}
	return a.ensureNetwork(ctx, rec)
}

// settled reads the network of a port, which must be the one the port was made on.
func (a *Activities) settled(ctx context.Context, p manifest.Port) (manifest.Record, error) {
	const action = "look up"
	object := "network/" + p.Network
	rec, err := a.records.Get(ctx, manifest.KindNetwork, p.Network)
	switch {
	case errors.Is(err, errs.ErrNotFound):
		return rec, errs.NewPermanent(object, action, err, "apply the network again")
	case err != nil:
		return rec, err
	case rec.Metadata.UID != p.NetworkUID:
		return rec, errs.NewPermanent(object, action, fmt.Errorf("it was deleted and made anew: %w", errs.ErrConflict), "delete and apply the server")
	case rec.Status.Network == nil:
		return rec, errs.NewTransient(object, action, errs.Reason("it is not ready yet (%s)", rec.Status.Phase))
	}
	return rec, nil
}

// ensureNetwork makes a network stand on this host; whoever calls holds its lock.
func (a *Activities) ensureNetwork(ctx context.Context, rec manifest.Record) error {
	object := "network/" + rec.Metadata.Name
	status := rec.Status.Network
	if status.Mode != manifest.ModeNAT && status.Mode != manifest.ModeIsolated {
		return errs.NewPermanent(object, "make it stand on host "+a.host,
			fmt.Errorf("mode %q: %w here", status.Mode, errors.ErrUnsupported), "use mode nat or isolated")
	}
	bridge, err := a.ensureBridge(ctx, object, rec)
	if err != nil {
		return err
	}
	desired, err := hostNetwork(rec, bridge.Userspace())
	if err != nil {
		return errs.NewPermanent(object, "read its record", err, "")
	}
	if err := a.stack.Ensure(ctx, desired); err != nil {
		return err
	}
	return a.ensureGatewayPort(ctx, object, rec)
}

// ensureBridge makes the network's bridge. One with another network's mark stays while
// this host refers to that network; one without a mark stays for ever.
func (a *Activities) ensureBridge(ctx context.Context, object string, rec manifest.Record) (ovsx.Bridge, error) {
	const action = "make its bridge"
	name, uid := rec.Status.Network.Bridge, rec.Metadata.UID
	bridge, err := a.sw.Bridge(ctx, name)
	if err != nil && !errors.Is(err, errs.ErrNotFound) {
		return bridge, err
	}
	if err != nil {
		// Open vSwitch would take a device of that name over, or never make the bridge.
		foreign, err := a.stack.ForeignDevice(name)
		if err != nil {
			return bridge, err
		}
		if foreign {
			return bridge, errs.NewPermanent(object, action, fmt.Errorf("network device %s: %w", name, errs.ErrNotManaged),
				"give the network another bridgeName, or remove the device")
		}
	}
	settings := ovsx.BridgeSettings{Datapath: a.sw.HostDatapath(), ExternalIDs: map[string]string{ovsx.KeyNetwork: uid}}
	if err == nil {
		owner := bridge.ExternalIDs[ovsx.KeyNetwork]
		switch {
		case owner == "":
			return bridge, errs.NewPermanent(object, action, fmt.Errorf("bridge %s: %w", name, errs.ErrNotManaged), "give the network another bridgeName")
		case owner != uid:
			if err := a.clear(ctx, object, name, owner); err != nil {
				return bridge, err
			}
		case bridge.FailMode == "secure" && bridge.DatapathID != "":
			return bridge, nil
		default:
			settings.Datapath = bridge.Datapath
		}
	}
	if err := a.sw.Transact(ctx, object, action, func(tx *ovsx.Tx) { tx.AddBridge(name, settings) }); err != nil {
		return bridge, err
	}
	return a.sw.AwaitBridge(ctx, name)
}

// clear takes down what an earlier network left where the bridge should be.
func (a *Activities) clear(ctx context.Context, object, bridge, owner string) error {
	users, err := a.records.References(ctx, owner, a.host)
	if err != nil {
		return err
	}
	if len(users) > 0 {
		return errs.NewPermanent(object, "make its bridge",
			fmt.Errorf("bridge %s belongs to network %s with %d servers: %w", bridge, owner, len(users), errs.ErrBusy), "give the network another bridgeName")
	}
	return a.takeDown(ctx, owner)
}

// ensureGatewayPort puts the gateway on the bridge and gives the bridge its base flows.
func (a *Activities) ensureGatewayPort(ctx context.Context, object string, rec manifest.Record) error {
	device, uid, status := hostnet.GatewayDevice(rec.Metadata.UID), rec.Metadata.UID, rec.Status.Network
	index, err := a.stack.DeviceIndex(device)
	if err != nil {
		return err
	}
	marks := map[string]string{ovsx.KeyNetwork: uid, ovsx.KeyGateway: "true", ovsx.KeyIndex: strconv.Itoa(index)}
	port, err := a.sw.Port(ctx, device)
	if err != nil && !errors.Is(err, errs.ErrNotFound) {
		return err
	}
	if err != nil || port.Bridge != status.Bridge || port.Tag != status.VLAN || port.OFPort <= 0 || !port.LinkUp ||
		!maps.Equal(port.ExternalIDs, marks) {
		settings := ovsx.PortSettings{Tag: status.VLAN, ExternalIDs: marks}
		// Two transactions: in one, ovs-vswitchd sees no change and keeps reading a device
		// of that name that is gone.
		const action = "put its gateway on the bridge"
		if err == nil {
			err = a.sw.Transact(ctx, object, action, func(tx *ovsx.Tx) { tx.DeletePort(device) })
		}
		if err != nil && !errors.Is(err, errs.ErrNotFound) {
			return err
		}
		if err := a.sw.Transact(ctx, object, action, func(tx *ovsx.Tx) { tx.AddPort(status.Bridge, device, settings) }); err != nil {
			return err
		}
		if port, err = a.sw.AwaitPort(ctx, device); err != nil {
			return err
		}
	}
	return a.sw.SetBaseFlows(ctx, status.Bridge, port.OFPort)
}

// hostNetwork is a network's record as this host's namespaces need it.
func hostNetwork(rec manifest.Record, userspace bool) (hostnet.Network, error) {
	status := rec.Status.Network
	n := hostnet.Network{
		UID: rec.Metadata.UID, Name: rec.Metadata.Name, Namespace: status.Namespace, MTU: status.MTU,
		NAT: status.Mode == manifest.ModeNAT, Userspace: userspace, Domain: status.Domain,
	}
	spec, err := networkSpec(rec)
	if err != nil {
		return n, err
	}
	n.DHCP = spec.DHCP
	for _, text := range spec.DNS.Forwarders {
		forwarder, err := netip.ParseAddr(text)
		if err != nil {
			return n, fmt.Errorf("forwarder: %w", err)
		}
		n.Forwarders = append(n.Forwarders, forwarder)
	}
	n.Gateways, err = gateways(status.Subnets)
	return n, err
}

// gateways are the addresses that the network's namespace has, with their subnets' lengths.
func gateways(subnets []manifest.Subnet) ([]netip.Prefix, error) {
	var all []netip.Prefix
	for _, s := range subnets {
		if s.Gateway == "" || s.Gateway == "none" {
			continue
		}
		subnet, err := netip.ParsePrefix(s.CIDR)
		if err != nil {
			return nil, fmt.Errorf("subnet: %w", err)
		}
		gateway, err := netip.ParseAddr(s.Gateway)
		if err != nil {
			return nil, fmt.Errorf("gateway of %s: %w", s.CIDR, err)
		}
		if !subnet.Contains(gateway) {
			return nil, fmt.Errorf("gateway %s is outside of %s: %w", gateway, subnet, errs.ErrInvalid)
		}
		all = append(all, netip.PrefixFrom(gateway, subnet.Bits()))
	}
	return all, nil
}
