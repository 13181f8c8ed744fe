package manifest

import (
	"fmt"
	"net/netip"
	"strings"

	"go4.org/netipx"
)

// NoGateway is the word for a subnet without one.
const NoGateway = "none"

// network brings a Network's spec into its normal form.
func (d *decoder) network(in networkInput) *NetworkSpec {
	spec := &NetworkSpec{
		Mode: in.Mode, BridgeName: in.BridgeName, DHCP: in.DHCP, MTU: in.MTU, PortSecurity: in.PortSecurity,
		DNS: DNS{Domain: in.DNS.Domain},
	}
	if in.VLAN != nil {
		spec.VLAN = *in.VLAN
	}
	if in.CIDR != "" {
		in.Subnets = d.olderForm(in)
	}
	for i, s := range in.Subnets {
		spec.Subnets = append(spec.Subnets, d.subnet(fmt.Sprintf("spec.subnets[%d]", i), s))
	}
	d.bridgeName(spec)
	d.dns(spec, in.DNS)
	if spec.Mode == "" {
		spec.Mode = defaultMode(spec.Subnets)
	}
	return spec
}

// defaultMode: a network with a gateway leads somewhere; one without does not.
func defaultMode(subnets []Subnet) NetworkMode {
	for _, s := range subnets {
		if s.Gateway != NoGateway {
			return ModeNAT
		}
	}
	if len(subnets) > 0 {
		return ModeIsolated
	}
	return ModeNAT
}

// olderForm turns iPNetworkAddress into the one subnet it means.
func (d *decoder) olderForm(in networkInput) []subnetInput {
	const old = "spec.iPNetworkAddress"
	if len(in.Subnets) > 0 {
		d.complain(old, "iPNetworkAddress and subnets exclude each other", "move it into subnets, as cidr")
		return in.Subnets
	}
	d.doc.places["spec.subnets[0].cidr"] = d.doc.where(old)
	if !d.doc.sound(old) {
		d.doc.spoil("spec.subnets[0].cidr")
	}
	return []subnetInput{{CIDR: in.CIDR}}
}

// subnet gives canonical text; whatever cannot be read is complained about and left out.
func (d *decoder) subnet(path string, in subnetInput) Subnet {
	out := Subnet(in)
	if in.CIDR == "" || !d.doc.sound(path+".cidr") {
		return out
	}
	prefix, err := parseCIDR(in.CIDR)
	if err != nil {
		d.complain(path+".cidr", err.Error(), "write 192.168.40.0/24 or fd00:40::/64")
		out.CIDR = "" // so that it is compared with nothing
		return out
	}
	out.CIDR = prefix.String()
	out.Gateway = d.gateway(path+".gateway", in.Gateway, prefix)
	if in.Range != "" && d.doc.sound(path+".range") {
		out.Range = d.addressRange(path+".range", in.Range, prefix)
	}
	out.Reserved = nil
	for i, text := range in.Reserved {
		if own := d.doc.element(path+".reserved", i); d.doc.sound(own) {
			out.Reserved = append(out.Reserved, d.addressRange(own, text, prefix))
		}
	}
	return out
}

// parseCIDR clears host bits and refuses what cannot carry servers.
func parseCIDR(text string) (netip.Prefix, error) {
	prefix, err := netip.ParsePrefix(text)
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("%s is not a network address with its prefix length", quote(text))
	}
	address := prefix.Addr()
	if address.Is4In6() || address.Zone() != "" {
		return netip.Prefix{}, fmt.Errorf("%s is not a plain IPv4 or IPv6 network", quote(text))
	}
	prefix = prefix.Masked()
	switch {
	case prefix.Bits() > address.BitLen()-2:
		return netip.Prefix{}, fmt.Errorf("%s has no room for a gateway and a server; its prefix may be at most /%d", prefix, address.BitLen()-2)
	case prefix.Bits() < 8:
		return netip.Prefix{}, fmt.Errorf("%s is larger than /8", prefix)
	case address.IsMulticast() || address.IsLoopback() || address.IsUnspecified() || address.IsLinkLocalUnicast():
		return netip.Prefix{}, fmt.Errorf("%s is not for servers", prefix)
	}
	return prefix, nil
}

// gateway gives the address, the first of the subnet by default, or "none".
func (d *decoder) gateway(path, text string, prefix netip.Prefix) string {
	switch {
	case !d.doc.sound(path):
		return ""
	case text == "":
		return prefix.Addr().Next().String()
	case text == NoGateway:
		return NoGateway
	}
	address, err := netip.ParseAddr(text)
	if err != nil {
		d.complain(path, quote(text)+" is not an address", "write an address of "+prefix.String()+", or none")
		return ""
	}
	if reason := unusable(prefix, address); reason != "" {
		d.complain(path, reason, "choose another address of "+prefix.String()+", or none")
	}
	return address.String()
}

// addressRange gives "a" or "a-b" in canonical text.
func (d *decoder) addressRange(path, text string, prefix netip.Prefix) string {
	r, err := parseRange(text)
	if err != nil {
		d.complain(path, err.Error(), "write one address, or first-last")
		return text
	}
	for _, end := range []netip.Addr{r.From(), r.To()} {
		if !prefix.Contains(end) {
			d.complain(path, fmt.Sprintf("%s is outside %s", end, prefix), "choose addresses of the subnet")
			break
		}
	}
	if r.From() == r.To() {
		return r.From().String()
	}
	return r.String()
}

// parseRange reads one address or a range of them.
func parseRange(text string) (netipx.IPRange, error) {
	from, to, found := strings.Cut(strings.ReplaceAll(text, " ", ""), "-")
	if !found {
		to = from
	}
	first, err1 := netip.ParseAddr(from)
	last, err2 := netip.ParseAddr(to)
	if err1 != nil || err2 != nil || first.Zone() != "" || last.Zone() != "" {
		return netipx.IPRange{}, fmt.Errorf("%s is not an address or a range of addresses", quote(text))
	}
	r := netipx.IPRangeFrom(first, last)
	if !r.IsValid() {
		return netipx.IPRange{}, fmt.Errorf("%s is not a range: its first address comes after its last", quote(text))
	}
	return r, nil
}

// unusable says why an address of a network cannot be a host's, or "".
func unusable(prefix netip.Prefix, address netip.Addr) string {
	switch {
	case !prefix.Contains(address):
		return fmt.Sprintf("%s is outside %s", address, prefix)
	case address == prefix.Addr():
		return fmt.Sprintf("%s is the network's own address", address)
	case address.Is4() && address == netipx.PrefixLastIP(prefix):
		return fmt.Sprintf("%s is the broadcast address of %s", address, prefix)
	}
	return ""
}

func (d *decoder) bridgeName(spec *NetworkSpec) {
	const path = "spec.bridgeName"
	if spec.BridgeName == "" {
		spec.BridgeName = BridgeName(d.doc.Metadata.Name)
		return
	}
	if d.doc.sound(path) && !devicePattern.MatchString(spec.BridgeName) {
		d.complain(path, quote(spec.BridgeName)+" is not a device's name", fmt.Sprintf("use at most %d letters, digits, '.', '_' and '-'", MaxDeviceName))
	}
}

func (d *decoder) dns(spec *NetworkSpec, in dnsInput) {
	if in.Domain == "" {
		spec.DNS.Domain = d.doc.Metadata.Name
	} else if d.doc.sound("spec.dns.domain") && !isDomain(in.Domain) {
		d.complain("spec.dns.domain", quote(in.Domain)+" is not a domain", "use labels of lower-case letters, digits and '-', joined by dots")
	}
	for i, text := range in.Forwarders {
		spec.DNS.Forwarders = append(spec.DNS.Forwarders, d.address(d.doc.element("spec.dns.forwarders", i), text))
	}
}
