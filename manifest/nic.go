package manifest

import (
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

var (
	devicePattern  = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,14}$`)
	nicNamePattern = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$`)
)

// nics brings a server's NICs into their normal form; none at all means host-bridge.
func (d *decoder) nics(in []nicInput) []NIC {
	if len(in) == 0 {
		in = []nicInput{{Network: HostBridge}}
	}
	nics := make([]NIC, 0, len(in))
	ordinals := map[string]int{}
	names := map[string]int{}
	for i, n := range in {
		path := fmt.Sprintf("spec.networkInterface[%d]", i)
		nic := d.nic(path, n)
		if nic.Name == "" {
			nic.Name = n.Network + "-" + strconv.Itoa(ordinals[n.Network])
		}
		ordinals[n.Network]++
		if first, twice := names[nic.Name]; twice && n.Network != "" {
			d.complain(path+".name", fmt.Sprintf("%s is already the name of spec.networkInterface[%d]", quote(nic.Name), first), "give each NIC its own name")
		}
		names[nic.Name] = i
		nics = append(nics, nic)
	}
	return nics
}

func (d *decoder) nic(path string, in nicInput) NIC {
	d.name63(KindNetwork, path+".networkname", in.Network)
	nic := NIC{Name: in.Name, Network: in.Network, DHCP4: in.DHCP4, DHCP6: in.DHCP6}
	if in.Name != "" && d.doc.sound(path+".name") && !nicNamePattern.MatchString(in.Name) {
		d.complain(path+".name", quote(in.Name)+" is not a valid name", "use lower-case letters, digits and '-'")
	}
	nic.Address = d.staticAddresses(path, in)
	nic.MAC = d.mac(path+".mac", in.MAC)
	for i, r := range in.Routes {
		nic.Routes = append(nic.Routes, d.route(fmt.Sprintf("%s.routes[%d]", path, i), r))
	}
	nic.Nameservers = d.nameservers(path+".nameservers", in.Nameservers)
	nic.VLANs, nic.NativeVLAN = d.vlans(path, in)
	if in.RateMbps != nil {
		nic.RateMbps = *in.RateMbps
	}
	return nic
}

// staticAddresses gives bare addresses and keeps the prefix lengths that came with them,
// for the comparison with the subnet.
func (d *decoder) staticAddresses(path string, in nicInput) []string {
	bits := d.maskBits(path, in)
	var addresses []string
	for i, text := range in.Address {
		own := d.doc.element(path+".address", i)
		if !d.doc.sound(own) {
			addresses = append(addresses, text) // indexes stay those of the manifest
			continue
		}
		bare, length, hasLength := strings.Cut(text, "/")
		address, err := netip.ParseAddr(bare)
		n, lengthErr := strconv.Atoi(length)
		switch {
		case err != nil || address.Zone() != "" || address.Is4In6() || hasLength && (lengthErr != nil || n < 1 || n > address.BitLen()):
			d.complain(own, quote(text)+" is not an address", "write 192.168.40.10 or fd00:40::10, with or without prefix length")
			addresses = append(addresses, text)
			continue
		case hasLength:
			d.doc.prefixes[own] = n
		case bits > 0 && (address.Is4() || in.NetmaskLen != nil):
			d.doc.prefixes[own] = bits
		}
		if slices.Contains(addresses, address.String()) {
			d.complain(own, address.String()+" is given twice", "remove one of them")
		}
		addresses = append(addresses, address.String())
	}
	return addresses
}

// maskBits is the prefix length of netmasklen or netmask; 0 means neither. A mask that
// does not parse is an error, never a guess.
func (d *decoder) maskBits(path string, in nicInput) int {
	own := path + ".netmask"
	if in.NetmaskLen != nil {
		own = path + ".netmasklen"
	}
	if in.NetmaskLen == nil && in.Netmask == "" || !d.doc.sound(own) {
		return 0
	}
	if len(in.Address) == 0 {
		d.complain(own, "belongs to address, which is not given", "remove it, or give an address")
		return 0
	}
	if in.NetmaskLen != nil {
		if in.Netmask != "" {
			d.complain(path+".netmask", "netmask and netmasklen exclude each other", "remove one of them")
		}
		return *in.NetmaskLen
	}
	mask := net.ParseIP(in.Netmask).To4()
	ones, size := net.IPMask(mask).Size()
	if mask == nil || size != 32 || ones == 0 {
		d.complain(own, quote(in.Netmask)+" is not a netmask", "write 255.255.255.0, or netmasklen: 24")
		return 0
	}
	return ones
}

func (d *decoder) mac(path, text string) string {
	if text == "" || !d.doc.sound(path) {
		return ""
	}
	mac, err := net.ParseMAC(text)
	switch {
	case err != nil || len(mac) != 6:
		d.complain(path, quote(text)+" is not a MAC address", "write 52:54:00:12:34:56")
	case mac[0]&1 == 1:
		d.complain(path, quote(text)+" is a group address", "its first octet must be even, as in 52:54:00:12:34:56")
	case mac.String() == "00:00:00:00:00:00":
		d.complain(path, "the MAC address is zero", "write 52:54:00:12:34:56")
	}
	return mac.String()
}

func (d *decoder) route(path string, in routeInput) Route {
	out := Route(in)
	if in.To != "" && in.To != "default" && d.doc.sound(path+".to") {
		to, err := netip.ParsePrefix(in.To)
		if err != nil {
			d.complain(path+".to", quote(in.To)+" is not a destination", "write default, or a network as 10.0.0.0/8")
		} else {
			out.To = to.Masked().String()
		}
	}
	if in.Via != "" {
		out.Via = d.address(path+".via", in.Via)
	}
	return out
}

func (d *decoder) nameservers(path string, in *nameserversInput) *Nameservers {
	if in == nil || len(in.Addresses) == 0 && len(in.Search) == 0 {
		return nil
	}
	out := &Nameservers{Search: in.Search}
	for i, text := range in.Addresses {
		out.Addresses = append(out.Addresses, d.address(d.doc.element(path+".addresses", i), text))
	}
	for i, domain := range in.Search {
		if own := d.doc.element(path+".search", i); d.doc.sound(own) && !isDomain(domain) {
			d.complain(own, quote(domain)+" is not a domain", "use labels of lower-case letters, digits and '-', joined by dots")
		}
	}
	return out
}

// address checks one plain address and gives its canonical text.
func (d *decoder) address(path, text string) string {
	if !d.doc.sound(path) {
		return text
	}
	address, err := netip.ParseAddr(text)
	if err != nil || address.Zone() != "" {
		d.complain(path, quote(text)+" is not an address", "write 192.168.40.1 or fd00:40::1")
		return text
	}
	return address.String()
}

func (d *decoder) vlans(path string, in nicInput) (vlans []int, native int) {
	for i, id := range in.VLANs {
		own := d.doc.element(path+".vlans", i)
		switch {
		case !d.doc.sound(own):
		case id < 1 || id > 4094:
			d.complain(own, fmt.Sprintf("%d is not a VLAN", id), "use 1 to 4094")
		case slices.Contains(vlans, id):
			d.complain(own, fmt.Sprintf("VLAN %d is given twice", id), "remove one of them")
		}
		vlans = append(vlans, id)
	}
	if in.NativeVLAN == nil {
		return vlans, 0
	}
	if own := path + ".nativeVlan"; len(vlans) < 2 && d.doc.sound(own) && d.doc.sound(path+".vlans") {
		d.complain(own, "is for a trunk, and this NIC has fewer than two vlans", "list the trunk's vlans, or remove it")
	}
	return vlans, *in.NativeVLAN
}

// isDomain reports whether text is a DNS name in lower case.
func isDomain(text string) bool {
	if len(text) > 253 {
		return false
	}
	for label := range strings.SplitSeq(text, ".") {
		if len(label) > MaxNameLength || !labelPattern.MatchString(label) {
			return false
		}
	}
	return true
}
