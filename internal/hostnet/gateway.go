package hostnet

import (
	"context"
	"errors"
	"net/netip"
	"os"

	"github.com/vishvananda/netlink"
)

func (s *Stack) ensureNamespace(ctx context.Context, st state) error {
	n := st.Network
	if err := addNamespace(ctx, n.Namespace); err != nil {
		return err
	}
	links, err := openLinks(n.Namespace)
	if err != nil {
		return err
	}
	defer links.close()
	if err := links.up("lo"); err != nil {
		return err
	}
	// Forwarding is on in every network: without a way out, a guest then hears at once that
	// there is none, and several subnets of one network meet here.
	return inside(n.Namespace, func() error {
		return errors.Join(
			setSysctl("net/ipv4/ip_forward", "1"),
			ifPresent(setSysctl("net/ipv6/conf/all/forwarding", "1")),
			ifPresent(setSysctl("net/ipv6/conf/default/accept_ra", "0")),
			setSysctl("net/ipv4/conf/all/rp_filter", "1"),
		)
	})
}

// ifPresent overlooks a setting that this kernel does not have.
func ifPresent(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

func (s *Stack) ensureGateway(ctx context.Context, st state) error {
	n := st.Network
	links, err := openLinks(n.Namespace)
	if err != nil {
		return err
	}
	defer links.close()
	pair := veth{outer: GatewayDevice(n.UID), inner: gatewayLink, innerMAC: deviceMAC(n.UID, gatewayLink), mtu: n.MTU}
	if err := links.ensureVeth(pair, mark(n.UID), true); err != nil {
		return err
	}
	if n.Userspace {
		if err := inside(n.Namespace, func() error { return transmitChecksumsOff(gatewayLink) }); err != nil {
			return err
		}
		if err := s.Guard(ctx, pair.outer); err != nil {
			return err
		}
	}
	return setAddresses(links.Handle, gatewayLink, n.Gateways)
}

// ensureUplink joins a NAT network's namespace to the host, or parts the two.
func (s *Stack) ensureUplink(_ context.Context, st state) error {
	n := st.Network
	if st.Slot < 0 {
		return deleteVeth(UplinkDevice(n.UID))
	}
	links, err := openLinks(n.Namespace)
	if err != nil {
		return err
	}
	defer links.close()
	pair := veth{outer: UplinkDevice(n.UID), inner: uplinkLink, innerMAC: deviceMAC(n.UID, uplinkLink), mtu: n.MTU}
	if err := links.ensureVeth(pair, mark(n.UID), true); err != nil {
		return err
	}
	host, inner := uplinkAddresses(st.Slot)
	own, err := netlink.NewHandle()
	if err != nil {
		return err
	}
	defer own.Close()
	if err := setAddresses(own, pair.outer, []netip.Prefix{host}); err != nil {
		return err
	}
	if err := setAddresses(links.Handle, uplinkLink, []netip.Prefix{inner}); err != nil {
		return err
	}
	link, err := links.LinkByName(uplinkLink)
	if err != nil {
		return err
	}
	return links.RouteReplace(&netlink.Route{LinkIndex: link.Attrs().Index, Gw: host.Addr().AsSlice()})
}

func (s *Stack) ensureFirewall(ctx context.Context, st state) error {
	rules := namespaceRules(st.Slot >= 0, onThisHost(forwarders(st.Network)))
	return inside(st.Network.Namespace, func() error { return nft(ctx, rules) })
}
