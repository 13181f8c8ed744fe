package addresses

import (
	"net/netip"
	"slices"

	"go4.org/netipx"
	"pgregory.net/rapid"

	"burrow.dev/burrow/manifest"
)

// plain is what a network should be, in maps that anybody can check by reading.
type plain struct {
	uid     string
	exists  bool
	owners  map[string]netip.Addr
	held    map[netip.Addr]string // reserved by users
	resting map[netip.Addr]bool   // in quarantine
}

// The network of the model, small enough to be exhausted.
var (
	machineSubnets = []manifest.Subnet{
		{CIDR: "10.0.0.0/28", Gateway: "10.0.0.1", Range: "10.0.0.3-10.0.0.9", Reserved: []string{"10.0.0.5"}},
		{CIDR: "10.0.0.16/29", Gateway: "none"}, // of the same block of 256
		{CIDR: "fd00::/125", Gateway: "fd00::1"},
	}
	machinePrefixes = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/28"), netip.MustParsePrefix("10.0.0.16/29"), netip.MustParsePrefix("fd00::/125")}
)

// hosts lists what servers could have of a subnet, were nothing reserved by users; automatic
// those that are handed out unasked.
func (m *plain) hosts(subnet int) []netip.Addr {
	var out []netip.Addr
	for a := machinePrefixes[subnet].Addr(); machinePrefixes[subnet].Contains(a); a = a.Next() {
		switch a.String() {
		case "10.0.0.0", "10.0.0.1", "10.0.0.5", "10.0.0.15", "10.0.0.16", "10.0.0.23", "fd00::", "fd00::1":
		default:
			out = append(out, a)
		}
	}
	return out
}

func (m *plain) automatic(subnet int) []netip.Addr {
	return slices.DeleteFunc(m.hosts(subnet), func(a netip.Addr) bool {
		return m.held[a] != "" || (subnet == 0 && (a.Less(netip.MustParseAddr("10.0.0.3")) || netip.MustParseAddr("10.0.0.9").Less(a)))
	})
}

func (m *plain) ownerOf(a netip.Addr) string {
	for owner, has := range m.owners {
		if has == a {
			return owner
		}
	}
	return ""
}

func drawRange(t *rapid.T) netipx.IPRange {
	first := drawAddr(t)
	last := first
	for range rapid.IntRange(0, 4).Draw(t, "more") {
		last = last.Next()
	}
	return netipx.IPRangeFrom(first, last)
}

// each lists a range.
func each(r netipx.IPRange) []netip.Addr {
	var out []netip.Addr
	for a := r.From(); !r.To().Less(a); a = a.Next() {
		out = append(out, a)
	}
	return out
}
