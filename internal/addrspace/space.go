package addrspace

import (
	"encoding/binary"
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
	// auto is what may be handed out unasked: the range, or the whole subnet, without
	// network, broadcast, gateway and reserved addresses. Sorted, not overlapping.
	auto []netipx.IPRange
	// refused says why an address of the subnet is never handed out, even when asked for.
	refused []refusal
}

type refusal struct {
	ips *netipx.IPSet
	why string
}

// Parse reads a settled subnet. There are no silent defaults: what does not parse is
// an error (pitfall 27).
func Parse(s manifest.Subnet) (*Space, error) {
	prefix, err := netip.ParsePrefix(s.CIDR)
	if err != nil {
		return nil, fmt.Errorf("subnet %q: %w", s.CIDR, err)
	}
	prefix = netip.PrefixFrom(prefix.Addr().Unmap(), prefix.Bits()).Masked()
	if !prefix.IsValid() {
		return nil, fmt.Errorf("subnet %q is not valid", s.CIDR)
	}
	sp := &Space{Prefix: prefix}
	if err := sp.refuse(s); err != nil {
		return nil, fmt.Errorf("subnet %s: %w", prefix, err)
	}
	var auto netipx.IPSetBuilder
	auto.AddPrefix(prefix)
	if s.Range != "" {
		r, err := parseRange(s.Range)
		if err != nil {
			return nil, fmt.Errorf("subnet %s: range: %w", prefix, err)
		}
		var only netipx.IPSetBuilder
		only.AddRange(r)
		set, err := only.IPSet()
		if err != nil {
			return nil, fmt.Errorf("subnet %s: range: %w", prefix, err)
		}
		auto.Intersect(set)
	}
	for _, r := range sp.refused {
		auto.RemoveSet(r.ips)
	}
	set, err := auto.IPSet()
	if err != nil {
		return nil, fmt.Errorf("subnet %s: %w", prefix, err)
	}
	sp.auto = set.Ranges()
	return sp, nil
}

func (sp *Space) refuse(s manifest.Subnet) error {
	add := func(why string, ranges ...netipx.IPRange) error {
		var b netipx.IPSetBuilder
		for _, r := range ranges {
			b.AddRange(r)
		}
		set, err := b.IPSet()
		if err != nil {
			return fmt.Errorf("%s: %w", why, err)
		}
		sp.refused = append(sp.refused, refusal{ips: set, why: why})
		return nil
	}
	one := func(a netip.Addr) netipx.IPRange { return netipx.IPRangeFrom(a, a) }
	if err := add("the network's own address", one(sp.Prefix.Addr())); err != nil {
		return err
	}
	if sp.Prefix.Addr().Is4() {
		if err := add("the broadcast address", one(netipx.PrefixLastIP(sp.Prefix))); err != nil {
			return err
		}
	}
	if s.Gateway != "" && s.Gateway != GatewayNone {
		gw, err := netip.ParseAddr(s.Gateway)
		if err != nil {
			return fmt.Errorf("gateway: %w", err)
		}
		if err := add("the gateway", one(gw.Unmap())); err != nil {
			return err
		}
	}
	var reserved []netipx.IPRange
	for _, text := range s.Reserved {
		r, err := parseRange(text)
		if err != nil {
			return fmt.Errorf("reserved: %w", err)
		}
		reserved = append(reserved, r)
	}
	return add("reserved", reserved...)
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
		return BlockOf(a), true
	}
	return BlockOf(sp.auto[i].From()), true
}

// Size gives how many addresses may be handed out, in words: a /64 has too many to count.
func (sp *Space) Size() string {
	var total uint64
	for _, r := range sp.auto {
		from, to := r.From().As16(), r.To().As16()
		span := binary.BigEndian.Uint64(to[8:]) - binary.BigEndian.Uint64(from[8:])
		if [8]byte(from[:8]) != [8]byte(to[:8]) || total+span+1 <= total {
			return "more than 2^64"
		}
		total += span + 1
	}
	return fmt.Sprint(total)
}

// blockBits is the size of a block as host bits: 256 addresses.
const blockBits = 8

// BlockOf gives the block of 256 addresses around a.
func BlockOf(a netip.Addr) netip.Prefix {
	return netip.PrefixFrom(a, a.BitLen()-blockBits).Masked()
}
