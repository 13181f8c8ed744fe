package network

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/hostnet"
	"burrow.dev/burrow/internal/ovsx"
	"burrow.dev/burrow/manifest"
)

// errNoDevice: a guest's devices come with its start and go with its end.
var errNoDevice = fmt.Errorf("its device: %w: the domain is not started", errs.ErrNotFound)

// Wire puts the ports of a paused guest on the wire: VLAN and marks in one transaction,
// then what the port may send, then the server's name in the network's DNS. It returns
// when every port has its OpenFlow number and a link. Networks must stand (Ensure).
//
// Off: the guest's device is not there. Permanent: a port of that name that is neither the
// server's nor libvirt's for it.
func (a *Activities) Wire(ctx context.Context, in WireIn) (WireOut, error) {
	for _, p := range firstOfEach(in.Ports) {
		err := a.wire(ctx, in.Server, p.NetworkUID, in.Ports)
		if errors.Is(err, errNoDevice) {
			return WireOut{Off: true}, nil
		}
		if err != nil {
			return WireOut{}, err
		}
	}
	return WireOut{}, nil
}

// wire does it on one network.
func (a *Activities) wire(ctx context.Context, server activities.Server, networkUID string, ports []manifest.Port) error {
	unlock, err := a.networks.Lock(ctx, networkUID)
	if err != nil {
		return err
	}
	defer unlock()
	for _, p := range ports {
		if p.NetworkUID != networkUID {
			continue
		}
		if err := a.wirePort(ctx, server, p); err != nil {
			return err
		}
	}
	return a.setNames(ctx, server, networkUID, ports)
}

// wirePort does it for one port; whoever calls holds the network's lock, as below.
func (a *Activities) wirePort(ctx context.Context, server activities.Server, p manifest.Port) error {
	rec, err := a.settled(ctx, p)
	if err != nil {
		return err
	}
	rules, err := rulesOf(p)
	if err != nil {
		return errs.NewPermanent(server.Ref(), "wire "+p.Name, err, "")
	}
	attached, err := a.admit(ctx, server, p)
	if err != nil {
		return err
	}
	object, action := server.Ref(), fmt.Sprintf("wire %s to bridge %s", p.Eth(), p.Bridge)
	settings := portSettings(p, rec.Status.Network.VLAN)
	settings.ExternalIDs = marks(server, p, rules)
	if !attached {
		settings.ExternalIDs[ovsx.KeyInterfaceID] = server.UID + "/" + p.Name // libvirt gives its own
	}
	err = a.sw.Transact(ctx, object, action, func(tx *ovsx.Tx) { tx.AddPort(p.Bridge, p.Device, settings) })
	if err != nil {
		return err
	}
	port, err := a.sw.AwaitPort(ctx, p.Device)
	if err != nil {
		return err
	}
	return a.open(ctx, port, ovsx.Cookie(server.UID, p.Name), rules)
}

// admit decides whether the port may be taken: it is this NIC's, or libvirt has put this
// NIC's MAC there, or there is only the device (not attached).
func (a *Activities) admit(ctx context.Context, server activities.Server, p manifest.Port) (attached bool, err error) {
	action := "wire " + p.Eth()
	port, err := a.sw.Port(ctx, p.Device)
	switch {
	case errors.Is(err, errs.ErrNotFound):
		return false, a.present(server, p)
	case err != nil:
		return false, err
	case !port.OwnedBy(server.UID, p.MAC):
		return true, errs.NewPermanent(server.Ref(), action, fmt.Errorf("port %s: %w", p.Device, errs.ErrNotManaged), "remove the port with ovs-vsctl, or find out who made it")
	case port.Bridge != p.Bridge:
		return true, errs.NewTransient(server.Ref(), action, fmt.Errorf("port %s is on bridge %s, not %s: %w", p.Device, port.Bridge, p.Bridge, errs.ErrConflict))
	}
	return true, a.present(server, p)
}

// present tells whether the guest's end of a port is there: the port itself stays when a
// guest ends while libvirtd is away.
func (a *Activities) present(server activities.Server, p manifest.Port) error {
	index, err := a.stack.DeviceIndex(p.Device)
	if err == nil && index == 0 {
		err = errs.NewTransient(server.Ref(), "wire "+p.Eth(), errNoDevice)
	}
	return err
}

// open lets a wired port send what its rules allow. On the userspace datapath the host's
// own stack is kept away from the device first.
func (a *Activities) open(ctx context.Context, port ovsx.Port, cookie uint64, rules ovsx.Rules) error {
	if port.Userspace {
		if err := a.stack.Guard(ctx, port.Name); err != nil {
			return err
		}
	}
	return a.sw.SetPortFlows(ctx, port.Bridge, port.OFPort, cookie, rules)
}

// marks are the external_ids of a NIC's interface.
func marks(server activities.Server, p manifest.Port, rules ovsx.Rules) map[string]string {
	return map[string]string{
		ovsx.KeyNetwork: p.NetworkUID, ovsx.KeyServer: server.UID, ovsx.KeyNIC: p.Name,
		ovsx.KeyAttachedMAC: p.MAC, ovsx.KeyRules: rules.String(),
	}
}

func rulesOf(p manifest.Port) (ovsx.Rules, error) {
	addresses, err := addressesOf(p)
	return ovsx.Rules{MAC: p.MAC, Addresses: addresses, DHCP4: p.DHCP4, Security: p.Security, RateMbps: p.RateMbps}, err
}

func addressesOf(p manifest.Port) ([]netip.Addr, error) {
	var all []netip.Addr
	for _, text := range p.Addresses {
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("address of %s: %w", p.Name, err)
		}
		all = append(all, prefix.Addr())
	}
	return all, nil
}

// portSettings are a NIC's VLANs: one is access, several are a trunk, none is the
// network's own.
func portSettings(p manifest.Port, networkVLAN int) ovsx.PortSettings {
	switch {
	case len(p.VLANs) == 0 && p.NativeVLAN == 0:
		return ovsx.PortSettings{Tag: networkVLAN}
	case len(p.VLANs) == 1 && (p.NativeVLAN == 0 || p.NativeVLAN == p.VLANs[0]):
		return ovsx.PortSettings{Tag: p.VLANs[0]}
	}
	trunks := p.VLANs
	if p.NativeVLAN != 0 && !slices.Contains(trunks, p.NativeVLAN) {
		trunks = append([]int{p.NativeVLAN}, trunks...)
	}
	return ovsx.PortSettings{Tag: p.NativeVLAN, Trunks: trunks}
}

// setNames registers the server's addresses on one network.
func (a *Activities) setNames(ctx context.Context, server activities.Server, networkUID string, ports []manifest.Port) error {
	var names []hostnet.Name
	for _, p := range ports {
		if p.NetworkUID != networkUID {
			continue
		}
		addresses, err := addressesOf(p)
		if err != nil {
			return errs.NewPermanent(server.Ref(), "register its name", err, "")
		}
		names = append(names, hostnet.Name{Host: server.Name, MAC: p.MAC, Addresses: addresses})
	}
	return a.stack.SetNames(ctx, networkUID, server.UID, names)
}
