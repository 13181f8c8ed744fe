package addrspace

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"go4.org/netipx"

	"burrow.dev/burrow/manifest"
)

// Space is one subnet parsed: what may be handed out, and what may be asked for.
type Space struct {
	// Prefix is the subnet, host bits cleared.
	Prefix netip.Prefix
	// hosts is the subnet without network, broadcast and gateway address. Sorted, not
	// overlapping, as are the other two.
	hosts []netipx.IPRange
	// reserved is what of hosts the manifest or a user has reserved.
	reserved []netipx.IPRange
	// auto is what may be handed out unasked: hosts that are in the range, if there is one,
	// and not reserved.
	auto []netipx.IPRange
	// refused says why an address of the subnet is never handed out, even when asked for.
	refused []refusal
}

type refusal struct {
	ips *netipx.IPSet
	why string
	// reserved: it could be handed out if nobody had reserved it.
	reserved bool
}

// Parse reads a settled subnet and takes out what is reserved in it: by the manifest, or by
// users, of any subnet. There are no silent defaults: what does not parse is an error
// (pitfall 27).
func Parse(s manifest.Subnet, users ...Reserved) (*Space, error) {
	prefix, err := netip.ParsePrefix(s.CIDR)
	if err != nil {
		return nil, fmt.Errorf("subnet %q: %w", s.CIDR, err)
	}
	prefix = netip.PrefixFrom(prefix.Addr().Unmap(), prefix.Bits()).Masked()
	if !prefix.IsValid() {
		return nil, fmt.Errorf("subnet %q is not valid", s.CIDR)
	}
	sp := &Space{Prefix: prefix}
	if err := sp.refuse(s, users); err != nil {
		return nil, fmt.Errorf("subnet %s: %w", prefix, err)
	}
	if err := sp.divide(s.Range); err != nil {
		return nil, fmt.Errorf("subnet %s: %w", prefix, err)
	}
	return sp, nil
}

// divide fills hosts, reserved and auto from what is refused.
func (sp *Space) divide(within string) error {
	var hosts, reserved, auto netipx.IPSetBuilder
	hosts.AddPrefix(sp.Prefix)
	auto.AddPrefix(sp.Prefix)
	if within != "" {
		r, err := parseRange(within)
		if err != nil {
			return fmt.Errorf("range: %w", err)
		}
		set, err := setOf(r)
		if err != nil {
			return fmt.Errorf("range: %w", err)
		}
		auto.Intersect(set)
	}
	for _, r := range sp.refused {
		auto.RemoveSet(r.ips)
		if r.reserved {
			reserved.AddSet(r.ips)
		} else {
			hosts.RemoveSet(r.ips)
		}
	}
	for _, part := range []struct {
		from *netipx.IPSetBuilder
		into *[]netipx.IPRange
	}{{&hosts, &sp.hosts}, {&auto, &sp.auto}} {
		set, err := part.from.IPSet()
		if err != nil {
			return err
		}
		*part.into = set.Ranges()
	}
	set, err := setOf(sp.hosts...)
	if err != nil {
		return err
	}
	reserved.Intersect(set)
	if set, err = reserved.IPSet(); err != nil {
		return err
	}
	sp.reserved = set.Ranges()
	return nil
}

func setOf(ranges ...netipx.IPRange) (*netipx.IPSet, error) {
	var b netipx.IPSetBuilder
	for _, r := range ranges {
		b.AddRange(r)
	}
	return b.IPSet()
}

func (sp *Space) refuse(s manifest.Subnet, users []Reserved) error {
	add := func(why string, reserved bool, ranges ...netipx.IPRange) error {
		set, err := setOf(ranges...)
		if err != nil {
			return fmt.Errorf("%s: %w", why, err)
		}
		sp.refused = append(sp.refused, refusal{ips: set, why: why, reserved: reserved})
		return nil
	}
	one := func(a netip.Addr) netipx.IPRange { return netipx.IPRangeFrom(a, a) }
	if err := add("the network's own address", false, one(sp.Prefix.Addr())); err != nil {
		return err
	}
	if sp.Prefix.Addr().Is4() {
		if err := add("the broadcast address", false, one(netipx.PrefixLastIP(sp.Prefix))); err != nil {
			return err
		}
	}
	if s.Gateway != "" && s.Gateway != GatewayNone {
		gw, err := netip.ParseAddr(s.Gateway)
		if err != nil {
			return fmt.Errorf("gateway: %w", err)
		}
		if err := add("the gateway", false, one(gw.Unmap())); err != nil {
			return err
		}
	}
	byManifest, err := reservedRanges(s)
	if err != nil {
		return err
	}
	if err := add("reserved by the network's manifest", true, byManifest...); err != nil {
		return err
	}
	for _, r := range users {
		if !sp.Prefix.Contains(r.First) {
			continue
		}
		if err := add(r.why(), true, r.Range()); err != nil {
			return err
		}
	}
	return nil
}

func reservedRanges(s manifest.Subnet) ([]netipx.IPRange, error) {
	var out []netipx.IPRange
	for _, text := range s.Reserved {
		r, err := parseRange(text)
		if err != nil {
			return nil, fmt.Errorf("reserved: %w", err)
		}
		out = append(out, r)
	}
	return out, nil
}

// GatewayNone is the gateway of a subnet that has none.
const GatewayNone = "none"

// parseRange reads "a-b" or "a".
func parseRange(text string) (netipx.IPRange, error) {
	from, to, found := strings.Cut(text, "-")
	if !found {
		to = from
	}
	a, err := netip.ParseAddr(strings.TrimSpace(from))
	if err != nil {
		return netipx.IPRange{}, err
	}
	b, err := netip.ParseAddr(strings.TrimSpace(to))
	if err != nil {
		return netipx.IPRange{}, err
	}
	r := netipx.IPRangeFrom(a.Unmap(), b.Unmap())
	if !r.IsValid() {
		return netipx.IPRange{}, fmt.Errorf("%q is not a range", text)
	}
	return r, nil
}

// Refuses says why an address of the subnet cannot be asked for; "" is: it can.
func (sp *Space) Refuses(a netip.Addr) string {
	for _, r := range sp.refused {
		if r.ips.Contains(a) {
			return r.why
		}
	}
	return ""
}

// Automatic reports whether a may be handed out unasked: those are what block counts count.
func (sp *Space) Automatic(a netip.Addr) bool {
	i := sp.rangeAt(a)
	return i < len(sp.auto) && sp.auto[i].Contains(a)
}

// rangeAt gives the index of the first range that ends at a or after it.
func (sp *Space) rangeAt(a netip.Addr) int {
	i, _ := slices.BinarySearchFunc(sp.auto, a, func(r netipx.IPRange, a netip.Addr) int { return r.To().Compare(a) })
	return i
}

// Capacity is how many addresses of a block may be handed out.
func (sp *Space) Capacity(block netip.Prefix) int {
	n := 0
	for _, r := range sp.Within(block) {
		n += int(lastByte(r.To())) - int(lastByte(r.From())) + 1
	}
	return n
}

// Within gives the automatic ranges cut to a block.
func (sp *Space) Within(block netip.Prefix) []netipx.IPRange {
	first, last := block.Addr(), netipx.PrefixLastIP(block)
	var out []netipx.IPRange
	for _, r := range sp.auto[sp.rangeAt(first):] {
		if last.Less(r.From()) {
			break
		}
		from, to := r.From(), r.To()
		if from.Less(first) {
			from = first
		}
		if last.Less(to) {
			to = last
		}
		out = append(out, netipx.IPRangeFrom(from, to))
	}
	return out
}

func lastByte(a netip.Addr) byte { b := a.As16(); return b[15] }

// BlockFrom gives the first block that holds an automatic address at a or after it.
func (sp *Space) BlockFrom(a netip.Addr) (netip.Prefix, bool) {
	if !a.IsValid() {
		return netip.Prefix{}, false
	}
	i := sp.rangeAt(a)
	if i == len(sp.auto) {
		return netip.Prefix{}, false
	}
	if sp.auto[i].From().Less(a) {
		return sp.BlockOf(a), true
	}
	return sp.BlockOf(sp.auto[i].From()), true
}

// blockBits is the size of a block as host bits: 256 addresses.
const blockBits = 8

// BlockOf gives the block around a, which is in the subnet: 256 addresses, or the whole of a
// smaller subnet. No block has addresses of two subnets.
func (sp *Space) BlockOf(a netip.Addr) netip.Prefix {
	return netip.PrefixFrom(a, max(a.BitLen()-blockBits, sp.Prefix.Bits())).Masked()
}

// WholeBlock reports whether a block has 256 addresses.
func WholeBlock(block netip.Prefix) bool { return block.Bits() == block.Addr().BitLen()-blockBits }
