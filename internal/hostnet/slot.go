package hostnet

import (
	"encoding/binary"
	"errors"
	"hash/fnv"
	"net/netip"

	"github.com/vishvananda/netlink"
)

// Uplinks live in 169.254.0.0/16, which no router forwards and no site uses for its own:
// slot n is the n-th /30 of it.
const slots = 1 << 14

var (
	linkLocal4 = netip.MustParsePrefix("169.254.0.0/16")
	// reservedSlots are not for us: RFC 3927 keeps the first and last /24, clouds answer
	// for metadata in two others.
	reservedSlots = []netip.Prefix{
		netip.MustParsePrefix("169.254.0.0/24"), netip.MustParsePrefix("169.254.255.0/24"),
		netip.MustParsePrefix("169.254.169.0/24"), netip.MustParsePrefix("169.254.170.0/24"),
	}
)

// errNoSlot says that 16,000 networks share this host.
var errNoSlot = errors.New("every 169.254.x.y/30 is in use on this host")

// uplinkSubnet is a slot's /30.
func uplinkSubnet(slot int) netip.Prefix {
	base := linkLocal4.Addr().As4()
	binary.BigEndian.PutUint32(base[:], binary.BigEndian.Uint32(base[:])+uint32(slot)*4)
	return netip.PrefixFrom(netip.AddrFrom4(base), 30)
}

// uplinkAddresses are the host's and the namespace's address in a slot.
func uplinkAddresses(slot int) (host, inner netip.Prefix) {
	first := uplinkSubnet(slot).Addr().Next()
	return netip.PrefixFrom(first, 30), netip.PrefixFrom(first.Next(), 30)
}

// chooseSlot gives the first slot from the uid's own place on that overlaps none of taken.
// The same uid on the same host gets the same slot, as far as nobody else has it.
func chooseSlot(uid string, taken []netip.Prefix) (int, error) {
	h := fnv.New32a()
	h.Write([]byte(uid))
	start := int(h.Sum32() % slots)
	for i := range slots {
		slot := (start + i) % slots
		if !overlapsAny(uplinkSubnet(slot), reservedSlots) && !overlapsAny(uplinkSubnet(slot), taken) {
			return slot, nil
		}
	}
	return 0, errNoSlot
}

func overlapsAny(p netip.Prefix, all []netip.Prefix) bool {
	for _, other := range all {
		if p.Overlaps(other) {
			return true
		}
	}
	return false
}

// freeSlot chooses among the slots that neither another network nor the host itself uses.
func (s *Stack) freeSlot(uid string) (int, error) {
	others, err := s.states()
	if err != nil {
		return 0, err
	}
	var taken []netip.Prefix
	for _, other := range others {
		if other.Slot >= 0 && other.Network.UID != uid {
			taken = append(taken, uplinkSubnet(other.Slot))
		}
	}
	addresses, err := netlink.AddrList(nil, netlink.FAMILY_V4)
	if err != nil {
		return 0, err
	}
	for _, a := range addresses {
		// A whole 169.254.0.0/16 on a device (avahi) leaves room for longer prefixes.
		if p, ok := prefixOf(a); ok && p.Addr().IsLinkLocalUnicast() {
			taken = append(taken, netip.PrefixFrom(p.Addr(), max(p.Bits(), 24)).Masked())
		}
	}
	return chooseSlot(uid, taken)
}
