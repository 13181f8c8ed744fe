package manifest

import (
	"encoding/json"
	"fmt"
	"net/netip"
)

// segment is a network as far as addresses go.
type segment struct {
	name     string
	mode     NetworkMode
	prefixes []netip.Prefix
	gateways []netip.Addr
	// sound is false for a network whose own document has problems.
	sound bool
	// declared is false for a network whose subnet burrow has yet to choose.
	declared bool
}

// shared reports whether two networks are in one routing domain: the host routes
// between those that it routes for; an isolated network is a world of its own.
func shared(a, b segment) bool { return a.mode != ModeIsolated && b.mode != ModeIsolated }

// networks collects every network there is, and finds overlaps.
func (v *validator) networks() {
	v.segments = map[string]segment{}
	var standing []segment
	for _, record := range v.known.Each(KindNetwork) {
		if record.Status.Phase == PhaseFailed || record.Status.Phase == PhaseDamaged {
			continue // has no resources, or nobody can say which
		}
		s := segmentOfRecord(record)
		v.segments[s.name] = s
		if v.set.Find(KindNetwork, s.name) == nil {
			standing = append(standing, s)
		}
	}
	bridges := map[string]string{}
	for _, doc := range v.set.Documents {
		if doc.Network == nil {
			continue
		}
		s := v.segmentOf(doc)
		v.overlaps(doc, s, standing)
		standing = append(standing, s)
		v.segments[s.name] = s
		if other, twice := bridges[doc.Network.BridgeName]; twice && other != s.name {
			v.complain(doc, "spec.bridgeName", fmt.Sprintf("bridge %s is network %s's", doc.Network.BridgeName, quote(other)), "give it a bridgeName of its own")
		}
		bridges[doc.Network.BridgeName] = s.name
	}
}

// segmentOf takes a document's subnets; where it leaves them to burrow, those that an
// earlier apply settled.
func (v *validator) segmentOf(doc *Document) segment {
	s := segment{name: doc.Metadata.Name, mode: doc.Network.Mode, sound: true}
	known, exists := v.segments[s.name]
	if len(doc.Network.Subnets) == 0 && exists {
		s.prefixes, s.gateways, s.declared = known.prefixes, known.gateways, known.declared
		return s
	}
	s.take(doc.Network.Subnets)
	for i := range doc.Network.Subnets {
		s.sound = s.sound && doc.sound(fmt.Sprintf("spec.subnets[%d].cidr", i))
	}
	s.sound = s.sound && doc.sound("spec.subnets") && doc.sound("spec.iPNetworkAddress")
	return s
}

func segmentOfRecord(record Record) segment {
	s := segment{name: record.Metadata.Name, sound: true}
	var spec NetworkSpec
	if json.Unmarshal(record.Spec, &spec) == nil {
		s.mode = spec.Mode
		s.take(spec.Subnets)
	}
	if settled := record.Status.Network; settled != nil {
		s.mode, s.prefixes, s.gateways = settled.Mode, nil, nil
		s.take(settled.Subnets)
	}
	return s
}

// take reads subnets in normal form; index i of prefixes is subnet i as long as all are sound.
func (s *segment) take(subnets []Subnet) {
	for _, subnet := range subnets {
		prefix, err := netip.ParsePrefix(subnet.CIDR)
		if err != nil {
			s.prefixes = append(s.prefixes, netip.Prefix{})
			continue
		}
		s.prefixes = append(s.prefixes, prefix)
		if gateway, err := netip.ParseAddr(subnet.Gateway); err == nil {
			s.gateways = append(s.gateways, gateway)
		}
	}
	s.declared = len(subnets) > 0
}

// overlaps compares a network's subnets with each other and with the networks before it.
func (v *validator) overlaps(doc *Document, s segment, others []segment) {
	for i, prefix := range s.prefixes {
		path := fmt.Sprintf("spec.subnets[%d].cidr", i)
		for _, earlier := range s.prefixes[:i] {
			if prefix.Overlaps(earlier) {
				v.complain(doc, path, fmt.Sprintf("%s overlaps %s of the same network", prefix, earlier), "choose another cidr")
			}
		}
		for _, other := range others {
			if other.name == s.name || !shared(s, other) {
				continue
			}
			for _, theirs := range other.prefixes {
				if prefix.Overlaps(theirs) {
					v.complain(doc, path, fmt.Sprintf("%s overlaps network %s (%s) in the same routing domain", prefix, quote(other.name), theirs),
						"choose another cidr, or mode isolated")
				}
			}
		}
	}
}

// holding gives the subnet of a network that an address is in.
func (s segment) holding(address netip.Addr) (netip.Prefix, bool) {
	for _, prefix := range s.prefixes {
		if prefix.IsValid() && prefix.Contains(address) {
			return prefix, true
		}
	}
	return netip.Prefix{}, false
}
