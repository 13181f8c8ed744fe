package network

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
)

// DialNetwork connects by TCP to "IP:port" on a network, from the network's namespace on
// this host, so that overlapping subnets do not matter. The address must be in one of the
// network's subnets: this is no way to anywhere else.
//
// Permanent: no such network, an address outside of it, a network without an address of
// its own on this host (gateway: none). Transient: nobody answers, or the network does not
// stand here.
func (a *Activities) DialNetwork(ctx context.Context, network, address string) (net.Conn, error) {
	object, action := "network/"+network, "dial "+address
	rec, err := a.records.Get(ctx, manifest.KindNetwork, network)
	if errors.Is(err, errs.ErrNotFound) {
		return nil, errs.NewPermanent(object, action, err, "")
	}
	if err != nil {
		return nil, err
	}
	if rec.Status.Network == nil {
		return nil, errs.NewTransient(object, action, errs.Reason("it is not ready yet"))
	}
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return nil, errs.NewPermanent(object, action, errors.Join(errs.ErrInvalid, err), "give an IP address and a port")
	}
	if err := dialable(rec.Status.Network.Subnets, to.Addr()); err != nil {
		return nil, errs.NewPermanent(object, action, err, "")
	}
	return a.stack.Dial(ctx, rec.Status.Network.Namespace, address)
}

// dialable says why an address cannot be dialled.
func dialable(subnets []manifest.Subnet, to netip.Addr) error {
	for _, s := range subnets {
		prefix, err := netip.ParsePrefix(s.CIDR)
		if err != nil || !prefix.Contains(to) {
			continue
		}
		if s.Gateway == "" || s.Gateway == "none" {
			return fmt.Errorf("%s has no gateway, so this host has no address to dial from: %w", s.CIDR, errors.ErrUnsupported)
		}
		return nil
	}
	return fmt.Errorf("the address is in none of its subnets: %w", errs.ErrInvalid)
}

// networkSpec reads the spec of a network's record.
func networkSpec(rec manifest.Record) (manifest.NetworkSpec, error) {
	var spec manifest.NetworkSpec
	if len(rec.Spec) == 0 {
		return spec, nil
	}
	err := json.Unmarshal(rec.Spec, &spec)
	return spec, err
}
