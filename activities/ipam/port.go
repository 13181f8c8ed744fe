package ipam

import (
	"net/netip"
	"slices"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/internal/addrspace"
	"burrow.dev/burrow/manifest"
)

// newPort fills a port from its NIC and its network's record; gateways come later.
func newPort(server activities.Server, nic manifest.NIC, index int, rec manifest.Record, addrs []netip.Prefix, mac string) manifest.Port {
	network := *rec.Status.Network
	port := manifest.Port{
		Name: nic.Name, Index: index,
		Network: nic.Network, NetworkUID: rec.Metadata.UID,
		MAC: mac, Device: manifest.DeviceName(server.UID, nic.Name), Bridge: network.Bridge,
		Nameservers: resolvers(network), Search: search(network),
		Routes: slices.Clone(nic.Routes), DHCP4: nic.DHCP4, DHCP6: nic.DHCP6,
		MTU: network.MTU, VLANs: slices.Clone(nic.VLANs), NativeVLAN: nic.NativeVLAN,
		RateMbps: nic.RateMbps, Security: portSecurity(rec),
	}
	for _, addr := range addrs {
		port.Addresses = append(port.Addresses, addr.String())
	}
	if own := nic.Nameservers; own != nil {
		if len(own.Addresses) > 0 {
			port.Nameservers = slices.Clone(own.Addresses)
		}
		if len(own.Search) > 0 {
			port.Search = slices.Clone(own.Search)
		}
	}
	if len(port.VLANs) == 0 && network.VLAN != 0 {
		port.VLANs = []int{network.VLAN}
	}
	return port
}

// resolvers are the gateway addresses of a network whose gateway is ours: there our
// dnsmasq answers. On a bridge to somebody else's network, nobody of ours does.
func resolvers(network manifest.NetworkStatus) []string {
	if network.Mode == manifest.ModeBridge {
		return nil
	}
	var out []string
	for _, subnet := range network.Subnets {
		if gateway, ok := gatewayOf(subnet); ok {
			out = append(out, gateway.String())
		}
	}
	return out
}

func search(network manifest.NetworkStatus) []string {
	if network.Domain == "" {
		return nil
	}
	return []string{network.Domain}
}

func gatewayOf(subnet manifest.Subnet) (netip.Addr, bool) {
	if subnet.Gateway == "" || subnet.Gateway == addrspace.GatewayNone {
		return netip.Addr{}, false
	}
	addr, err := netip.ParseAddr(subnet.Gateway)
	return addr.Unmap(), err == nil
}

// setGateways gives each family one default route: that of the first port that has an
// address beside a gateway. An isolated network leads nowhere, so its gateway, which only
// answers DNS, is none. Where a NIC's own routes have a default, that one stands.
func setGateways(ports []manifest.Port, nics []manifest.NIC, networks map[string]manifest.Record) {
	routed := ownDefaults(nics)
	for i := range ports {
		network := networks[ports[i].Network].Status.Network
		if network.Mode == manifest.ModeIsolated {
			continue
		}
		for _, subnet := range network.Subnets {
			gateway, ok := gatewayOf(subnet)
			if !ok || routed[gateway.Is4()] || !reaches(ports[i], subnet) {
				continue
			}
			ports[i].Gateways = append(ports[i].Gateways, gateway.String())
			routed[gateway.Is4()] = true
		}
	}
}

// ownDefaults reports for which families (true is IPv4) NICs bring a default route.
func ownDefaults(nics []manifest.NIC) map[bool]bool {
	out := map[bool]bool{}
	for _, nic := range nics {
		for _, route := range nic.Routes {
			via, err := netip.ParseAddr(route.Via)
			if err == nil && (route.To == "default" || route.To == "0.0.0.0/0" || route.To == "::/0") {
				out[via.Unmap().Is4()] = true
			}
		}
	}
	return out
}

// reaches reports whether a port has an address in a subnet.
func reaches(port manifest.Port, subnet manifest.Subnet) bool {
	prefix, err := netip.ParsePrefix(subnet.CIDR)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(port.Addresses, func(text string) bool {
		addr, err := netip.ParsePrefix(text)
		return err == nil && prefix.Contains(addr.Addr())
	})
}

// portSecurity reads the switch from the network's spec; a spec that cannot be read is secure.
func portSecurity(rec manifest.Record) bool {
	spec := manifest.NetworkSpec{PortSecurity: true}
	return decode(rec.Spec, &spec) != nil || spec.PortSecurity
}
