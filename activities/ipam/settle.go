package ipam

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"go4.org/netipx"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/internal/addrspace"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
)

// Networks that ask for no subnet get the first free /24 of these.
var (
	autoFirst = netip.MustParsePrefix("172.16.100.0/24")
	autoLast  = netip.MustParseAddr("172.16.199.0")
)

// SettleNetwork makes a network's open choices against all others, in one transaction:
// two networks settled at once never get the same subnet or bridge. Asked again it
// answers the same.
func (a *Activities) SettleNetwork(ctx context.Context, in SettleNetworkIn) (SettleNetworkOut, error) {
	status, err := a.pools.Settle(ctx, in.UID, in.Name, func(others []addrspace.Entry) (manifest.NetworkStatus, error) {
		return settle(in, others)
	})
	return SettleNetworkOut{Network: status}, err
}

// ForgetNetwork removes all that is known of a network's addresses. In use: Permanent,
// with its users.
func (a *Activities) ForgetNetwork(ctx context.Context, in ForgetNetworkIn) (activities.Nothing, error) {
	err := a.pools.Forget(ctx, in.UID)
	var used *addrspace.InUseError
	if errors.As(err, &used) {
		err = errs.NewPermanent("network/"+in.Name, "delete", fmt.Errorf("%w: it is used by %s", errs.ErrBusy, a.userList(ctx, used.Users)),
			"delete these servers first")
	}
	return activities.Nothing{}, err
}

// settle is the decision: pure, asked again when another network was settled meanwhile.
func settle(in SettleNetworkIn, others []addrspace.Entry) (manifest.NetworkStatus, error) {
	object := manifest.Ref(manifest.KindNetwork, in.Name)
	status := manifest.NetworkStatus{
		Mode: in.Spec.Mode, Namespace: manifest.NamespaceName(in.Name),
		Domain: in.Spec.DNS.Domain, MTU: in.Spec.MTU, VLAN: in.Spec.VLAN,
	}
	if status.Mode == "" {
		status.Mode = manifest.ModeNAT
	}
	if status.Domain == "" {
		status.Domain = in.Name
	}
	if status.MTU == 0 {
		status.MTU = manifest.DefaultMTU
	}
	var err error
	if status.VNI, err = settleVNI(object, status.Mode, in.Spec.VNI, others); err != nil {
		return manifest.NetworkStatus{}, err
	}
	if status.Subnets, err = settleSubnets(object, status.Mode, in.Spec.Subnets, others); err != nil {
		return manifest.NetworkStatus{}, err
	}
	if err := refuseOverlap(object, status, others); err != nil {
		return manifest.NetworkStatus{}, err
	}
	status.Bridge, err = settleBridge(object, in, others)
	return status, err
}

// settleSubnets clears host bits and fills gateways; none given: the first free /24, except
// on a bridge to somebody else's network, whose addresses are theirs.
func settleSubnets(object string, mode manifest.NetworkMode, subnets []manifest.Subnet, others []addrspace.Entry) ([]manifest.Subnet, error) {
	if len(subnets) == 0 && mode != manifest.ModeBridge {
		free, ok := freeSubnet(others)
		if !ok {
			return nil, errs.NewPermanent(object, "choose a subnet",
				fmt.Errorf("%w: every /24 from %s to %s is in use", errs.ErrNoSpace, autoFirst.Addr(), autoLast), "give it a subnet of your own")
		}
		subnets = []manifest.Subnet{{CIDR: free.String()}}
	}
	out := make([]manifest.Subnet, 0, len(subnets))
	for _, s := range subnets {
		prefix, err := netip.ParsePrefix(s.CIDR)
		if err != nil {
			return nil, errs.NewPermanent(object, "read subnet", fmt.Errorf("%w: %q", errs.ErrInvalid, s.CIDR), "write it as 172.16.90.0/24")
		}
		prefix = netip.PrefixFrom(prefix.Addr().Unmap(), prefix.Bits()).Masked()
		s.CIDR = prefix.String()
		if s.Gateway == "" {
			s.Gateway = prefix.Addr().Next().String()
		}
		if _, err := addrspace.Parse(s); err != nil {
			return nil, errs.NewPermanent(object, "read subnet", fmt.Errorf("%w: %w", errs.ErrInvalid, err), "")
		}
		out = append(out, s)
	}
	return out, nil
}

func freeSubnet(others []addrspace.Entry) (netip.Prefix, bool) {
	for prefix := autoFirst; !autoLast.Less(prefix.Addr()); {
		if _, taken := overlapping(prefix, others, func(manifest.NetworkMode) bool { return true }); !taken {
			return prefix, true
		}
		prefix = netip.PrefixFrom(netipx.PrefixLastIP(prefix).Next(), prefix.Bits())
	}
	return netip.Prefix{}, false
}

// sharesRoutes reports whether networks of a mode are in the machine's routing domain,
// where two equal subnets would be ambiguous. Isolated ones may overlap.
func sharesRoutes(mode manifest.NetworkMode) bool {
	return mode == manifest.ModeNAT || mode == manifest.ModeRouted
}

func refuseOverlap(object string, status manifest.NetworkStatus, others []addrspace.Entry) error {
	for i, s := range status.Subnets {
		prefix := netip.MustParsePrefix(s.CIDR) // settleSubnets wrote it
		for _, earlier := range status.Subnets[:i] {
			if prefix.Overlaps(netip.MustParsePrefix(earlier.CIDR)) {
				return errs.NewPermanent(object, "settle", fmt.Errorf("%w: its subnets %s and %s overlap", errs.ErrInvalid, earlier.CIDR, s.CIDR), "choose subnets that do not overlap")
			}
		}
		if !sharesRoutes(status.Mode) {
			continue
		}
		if other, taken := overlapping(prefix, others, sharesRoutes); taken {
			return errs.NewPermanent(object, "settle", fmt.Errorf("%w: subnet %s overlaps that of network/%s", errs.ErrExists, s.CIDR, other),
				"choose another subnet, leave subnets out to get a free one, or make one of the networks isolated")
		}
	}
	return nil
}

// overlapping names a network of one of the modes whose subnets overlap a prefix.
func overlapping(prefix netip.Prefix, others []addrspace.Entry, modes func(manifest.NetworkMode) bool) (string, bool) {
	for _, other := range others {
		if !modes(other.Network.Mode) {
			continue
		}
		for _, s := range other.Network.Subnets {
			if p, err := netip.ParsePrefix(s.CIDR); err == nil && p.Overlaps(prefix) {
				return other.Name, true
			}
		}
	}
	return "", false
}

// settleBridge gives the bridge that was asked for, which others may share (VLANs keep
// them apart), or one of the network's own. A manifest without a bridgeName comes with the
// default filled in, and shortened names of two networks may be equal: then the uid is
// shortened instead.
func settleBridge(object string, in SettleNetworkIn, others []addrspace.Entry) (string, error) {
	asked := in.Spec.BridgeName
	if asked != "" && (in.Spec.Mode == manifest.ModeBridge || asked != manifest.BridgeName(in.Name)) {
		return asked, nil
	}
	if in.Spec.Mode == manifest.ModeBridge {
		return "", errs.NewPermanent(object, "settle", fmt.Errorf("%w: mode bridge without bridgeName", errs.ErrInvalid), "name the host's bridge in spec.bridgeName")
	}
	for _, name := range []string{manifest.BridgeName(in.Name), manifest.BridgeName(in.UID)} {
		if !bridgeTaken(name, others) {
			return name, nil
		}
	}
	return "", errs.NewPermanent(object, "settle", fmt.Errorf("%w: bridge %s belongs to another network", errs.ErrExists, manifest.BridgeName(in.Name)), "choose one in spec.bridgeName")
}

func bridgeTaken(name string, others []addrspace.Entry) bool {
	for _, other := range others {
		if other.Network.Bridge == name {
			return true
		}
	}
	return false
}
