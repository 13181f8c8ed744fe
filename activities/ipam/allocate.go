package ipam

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/internal/addrspace"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
)

// Allocate gives every NIC of a server its addresses and its MAC, and returns the ports
// with all that later steps need. Asked again it answers the same; what an earlier attempt
// took is found by its owner, so nothing leaks however often it is tried.
func (a *Activities) Allocate(ctx context.Context, in AllocateIn) (AllocateOut, error) {
	networks, err := a.networks(ctx, in.Server, in.NICs)
	if err != nil {
		return AllocateOut{}, err
	}
	addrs := make([][]netip.Prefix, len(in.NICs))
	for _, i := range staticFirst(in.NICs) {
		nic := in.NICs[i]
		rec := networks[nic.Network]
		wants, err := wantsOf(in.Server, nic, *rec.Status.Network)
		if err != nil {
			return AllocateOut{}, err
		}
		if addrs[i], err = a.pools.Allocate(ctx, rec.Metadata.UID, wants); err != nil {
			return AllocateOut{}, a.explain(ctx, nicRef(in.Server, nic), nic.Network, err)
		}
	}
	macs, err := a.claimMACs(ctx, in.Server, in.NICs)
	if err != nil {
		return AllocateOut{}, err
	}
	ports := make([]manifest.Port, len(in.NICs))
	for i, nic := range in.NICs {
		ports[i] = newPort(in.Server, nic, i, networks[nic.Network], addrs[i], macs[i])
	}
	setGateways(ports, in.NICs, networks)
	return AllocateOut{Ports: ports}, nil
}

// staticFirst gives the order in which NICs get their addresses: those that ask for one
// first, so that another NIC of the server is not given it.
func staticFirst(nics []manifest.NIC) []int {
	var static, automatic []int
	for i, nic := range nics {
		if len(nic.Address) > 0 {
			static = append(static, i)
		} else {
			automatic = append(automatic, i)
		}
	}
	return append(static, automatic...)
}

// networks gives the records of all networks of the NICs, by name. One that is absent or
// not settled is an error.
func (a *Activities) networks(ctx context.Context, server activities.Server, nics []manifest.NIC) (map[string]manifest.Record, error) {
	recs, err := a.registry.GetMany(ctx, manifest.KindNetwork, networkNames(nics)...)
	if err != nil {
		return nil, err
	}
	byName := map[string]manifest.Record{}
	for _, rec := range recs {
		byName[rec.Metadata.Name] = rec
	}
	for _, nic := range nics {
		rec, ok := byName[nic.Network]
		object := "network/" + nic.Network
		switch {
		case !ok:
			return nil, errs.NewPermanent(object, "allocate addresses for "+server.Ref(), errs.ErrNotFound, "apply the Network first")
		case rec.Status.Network == nil || rec.Status.Phase == manifest.PhaseDeleting:
			return nil, errs.NewPermanent(object, "allocate addresses for "+server.Ref(),
				fmt.Errorf("%w: it is %s", errs.ErrBusy, rec.Status.Phase), "see burrow describe "+object)
		}
	}
	return byName, nil
}

func networkNames(nics []manifest.NIC) []string {
	var names []string
	for _, nic := range nics {
		if !slices.Contains(names, nic.Network) {
			names = append(names, nic.Network)
		}
	}
	return names
}

// ownerPrefix starts the owner of each address of a NIC. It has the uid, never the name: a
// later server of that name owns nothing of this one's.
func ownerPrefix(server activities.Server, nic manifest.NIC) string {
	return server.UID + "/" + nic.Name + "/"
}

func nicRef(server activities.Server, nic manifest.NIC) string {
	return fmt.Sprintf("%s NIC %s", server.Ref(), nic.Name)
}

// wantsOf lists the addresses a NIC needs: the static ones, or one of each subnet. On a
// bridge to somebody else's network, a family that DHCP serves there needs none of ours.
func wantsOf(server activities.Server, nic manifest.NIC, network manifest.NetworkStatus) ([]addrspace.Want, error) {
	var wants []addrspace.Want
	add := func(w addrspace.Want) {
		w.Owner = fmt.Sprintf("%s%d", ownerPrefix(server, nic), len(wants))
		wants = append(wants, w)
	}
	for _, text := range nic.Address {
		addr, err := netip.ParseAddr(text)
		if err != nil {
			return nil, errs.NewPermanent(nicRef(server, nic), "read static address", fmt.Errorf("%w: %q", errs.ErrInvalid, text), "write a bare IPv4 or IPv6 address")
		}
		add(addrspace.Want{Static: addr.Unmap()})
	}
	if len(nic.Address) > 0 {
		return wants, nil
	}
	for i, subnet := range network.Subnets {
		prefix, err := netip.ParsePrefix(subnet.CIDR)
		if err != nil {
			return nil, errs.NewOperator("network/"+nic.Network, "read subnet", err, "")
		}
		foreign := network.Mode == manifest.ModeBridge && ((prefix.Addr().Is4() && nic.DHCP4) || (prefix.Addr().Is6() && nic.DHCP6))
		if !foreign {
			add(addrspace.Want{Subnet: i})
		}
	}
	return wants, nil
}
