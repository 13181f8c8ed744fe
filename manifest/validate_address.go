package manifest

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// spot is an address on a network: isolated networks may have the same addresses.
type spot struct {
	network string
	address string
}

// addresses: a static address is inside its network, usable, and nobody else's.
func (v *validator) addresses() {
	taken := v.knownAddresses()
	for _, doc := range v.set.Documents {
		if doc.Server == nil {
			continue
		}
		for i, nic := range doc.Server.NetworkInterface {
			path := fmt.Sprintf("spec.networkInterface[%d]", i)
			v.nicAddresses(doc, path, nic, taken)
			v.nextHops(doc, path, nic)
		}
	}
}

// others are the known servers that hold resources and are not declared anew by this apply.
func (v *validator) others() []Record {
	return slices.DeleteFunc(v.known.Each(KindServer), func(record Record) bool {
		return record.Status.Phase == PhaseFailed || v.set.Find(KindServer, record.Metadata.Name) != nil
	})
}

func (v *validator) knownAddresses() map[spot]string {
	taken := map[spot]string{}
	for _, record := range v.others() {
		holder := Ref(KindServer, record.Metadata.Name)
		for _, port := range record.Status.Ports {
			for _, text := range port.Addresses {
				bare, _, _ := strings.Cut(text, "/")
				taken[spot{port.Network, bare}] = holder
			}
		}
		var spec ServerSpec
		if json.Unmarshal(record.Spec, &spec) == nil {
			for _, nic := range spec.NetworkInterface {
				for _, text := range nic.Address {
					taken[spot{nic.Network, text}] = holder
				}
			}
		}
	}
	return taken
}

func (v *validator) nicAddresses(doc *Document, path string, nic NIC, taken map[spot]string) {
	for i, text := range nic.Address {
		own := doc.element(path+".address", i)
		address, err := netip.ParseAddr(text)
		s, exists := v.segments[nic.Network]
		if err != nil {
			continue
		}
		if exists && s.sound {
			v.inside(doc, own, s, address)
		}
		place := spot{nic.Network, text}
		if holder, clash := taken[place]; clash {
			where := ""
			if name, ok := strings.CutPrefix(holder, "server/"); ok && v.set.Find(KindServer, name) != nil {
				where = " of this apply"
			}
			v.complain(doc, own, fmt.Sprintf("%s is already taken by %s%s", text, holder, where), "choose another address, or leave it out")
			continue
		}
		taken[place] = doc.Ref()
	}
}

// inside checks a static address against its network.
func (v *validator) inside(doc *Document, path string, s segment, address netip.Addr) {
	if !s.declared {
		v.complain(doc, path, fmt.Sprintf("network %s has no subnet yet (burrow chooses one), so no address of it can be named", quote(s.name)),
			"add subnets to the network, or leave the address out")
		return
	}
	prefix, ok := s.holding(address)
	if !ok {
		v.complain(doc, path, fmt.Sprintf("%s is outside network %s (%s)", address, quote(s.name), prefixList(s.prefixes)), "choose an address inside it")
		return
	}
	if reason := unusable(prefix, address); reason != "" {
		v.complain(doc, path, reason, "choose another address")
		return
	}
	if slices.Contains(s.gateways, address) {
		v.complain(doc, path, fmt.Sprintf("%s is the gateway of network %s", address, quote(s.name)), "choose another address")
		return
	}
	if bits, given := doc.prefixes[path]; given && bits != prefix.Bits() {
		v.complain(doc, path, fmt.Sprintf("its prefix length is %d, but network %s has %s", bits, quote(s.name), prefix), fmt.Sprintf("write /%d, or leave it out", prefix.Bits()))
	}
}

// nextHops: a route's next hop can be reached from the NIC.
func (v *validator) nextHops(doc *Document, path string, nic NIC) {
	s, exists := v.segments[nic.Network]
	if !exists || !s.sound || !s.declared {
		return
	}
	for i, route := range nic.Routes {
		via, err := netip.ParseAddr(route.Via)
		if err != nil {
			continue
		}
		if _, ok := s.holding(via); !ok && !via.IsLinkLocalUnicast() {
			v.complain(doc, fmt.Sprintf("%s.routes[%d].via", path, i),
				fmt.Sprintf("%s is outside network %s (%s), so the server could not reach it", via, quote(s.name), prefixList(s.prefixes)), "name a router on this network")
		}
	}
}

// macs: a MAC that a user gives is on one NIC only.
func (v *validator) macs() {
	taken := map[string]string{}
	for _, record := range v.others() {
		for _, port := range record.Status.Ports {
			taken[port.MAC] = Ref(KindServer, record.Metadata.Name)
		}
	}
	for _, doc := range v.set.Documents {
		if doc.Server == nil {
			continue
		}
		for i, nic := range doc.Server.NetworkInterface {
			if nic.MAC == "" {
				continue
			}
			if holder, clash := taken[nic.MAC]; clash {
				v.complain(doc, fmt.Sprintf("spec.networkInterface[%d].mac", i), fmt.Sprintf("%s is already taken by %s", nic.MAC, holder), "choose another, or leave it out")
			}
			taken[nic.MAC] = doc.Ref()
		}
	}
}

func prefixList(prefixes []netip.Prefix) string {
	words := make([]string, len(prefixes))
	for i, p := range prefixes {
		words[i] = p.String()
	}
	return strings.Join(words, ", ")
}
