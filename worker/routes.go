package worker

import (
	"net/netip"

	"github.com/vishvananda/netlink"
	"go4.org/netipx"
)

// machinePrefixes are the networks that this machine has routes to, but for default routes.
func machinePrefixes() ([]netip.Prefix, error) {
	routes, err := netlink.RouteList(nil, netlink.FAMILY_V4)
	if err != nil {
		return nil, err
	}
	var prefixes []netip.Prefix
	for _, r := range routes {
		if r.Dst == nil {
			continue
		}
		if p, ok := netipx.FromStdIPNet(r.Dst); ok && p.Bits() > 0 {
			prefixes = append(prefixes, p)
		}
	}
	return prefixes, nil
}
