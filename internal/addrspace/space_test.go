package addrspace

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
	"go4.org/netipx"
	"pgregory.net/rapid"

	"burrow.dev/burrow/manifest"
)

func parse(t require.TestingT, s manifest.Subnet) *Space {
	sp, err := Parse(s)
	require.NoError(t, err)
	return sp
}

func TestWhatDoesNotParseIsAnError(t *testing.T) {
	tests := map[string]manifest.Subnet{
		"no prefix":        {CIDR: "10.0.0.0"},
		"netmask":          {CIDR: "10.0.0.0/255.255.0.0"},
		"gateway":          {CIDR: "10.0.0.0/24", Gateway: "10.0.0"},
		"range":            {CIDR: "10.0.0.0/24", Range: "10.0.0.9-10.0.0.2"},
		"mixed range":      {CIDR: "10.0.0.0/24", Range: "10.0.0.9-fd00::1"},
		"reserved":         {CIDR: "10.0.0.0/24", Reserved: []string{"10.0.0.x"}},
		"reserved reverse": {CIDR: "10.0.0.0/24", Reserved: []string{"10.0.0.9-10.0.0.8"}},
	}
	for name, subnet := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := Parse(subnet)
			require.Error(t, err)
		})
	}
}

func TestSizeInWords(t *testing.T) {
	tests := map[string]struct {
		subnet manifest.Subnet
		want   string
	}{
		"slash 30": {manifest.Subnet{CIDR: "10.0.0.0/30", Gateway: "10.0.0.1"}, "1"},
		"slash 24": {manifest.Subnet{CIDR: "10.0.0.0/24", Gateway: "10.0.0.1"}, "253"},
		"slash 16": {manifest.Subnet{CIDR: "10.0.0.0/16", Gateway: "10.0.0.1"}, "65533"},
		"slash 8":  {manifest.Subnet{CIDR: "10.0.0.0/8", Gateway: "none"}, "16777214"},
		"v6 64":    {manifest.Subnet{CIDR: "fd00::/64", Gateway: "fd00::1"}, "18446744073709551614"},
		"v6 48":    {manifest.Subnet{CIDR: "fd00::/48", Gateway: "fd00::1"}, "more than 2^64"},
		"nothing":  {manifest.Subnet{CIDR: "10.0.0.0/30", Gateway: "10.0.0.1", Reserved: []string{"10.0.0.2"}}, "0"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) { require.Equal(t, tt.want, parse(t, tt.subnet).Size().String()) })
	}
}

func TestRefusalsSayWhy(t *testing.T) {
	sp := parse(t, manifest.Subnet{CIDR: "10.0.0.9/24", Gateway: "10.0.0.7", Range: "10.0.0.100-10.0.0.200", Reserved: []string{"10.0.0.50-10.0.0.60", "10.0.0.150"}})
	for addr, why := range map[string]string{
		"10.0.0.0": "the network's own address", "10.0.0.255": "the broadcast address", "10.0.0.7": "the gateway",
		"10.0.0.55": "reserved by the network's manifest", "10.0.0.150": "reserved by the network's manifest", "10.0.0.8": "", "10.0.0.100": "",
	} {
		require.Equal(t, why, sp.Refuses(netip.MustParseAddr(addr)), addr)
	}
	require.False(t, sp.Automatic(netip.MustParseAddr("10.0.0.8")), "outside the range: only when asked for")
}

// A plain model: every address of the subnet, one by one.
func TestBlocksAndRangesAgreeWithCountingOneByOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bits := rapid.IntRange(20, 30).Draw(t, "bits")
		base := netip.AddrFrom4([4]byte{10, 1, rapid.Byte().Draw(t, "third"), rapid.Byte().Draw(t, "fourth")})
		prefix := netip.PrefixFrom(base, bits).Masked()
		whole := netipx.RangeOfPrefix(prefix)
		offset := rapid.IntRange(0, 1<<(32-bits)-1)
		at := func(label string) netip.Addr {
			a := prefix.Addr().As4()
			n := offset.Draw(t, label)
			v := uint32(a[0])<<24 | uint32(a[1])<<16 | uint32(a[2])<<8 | uint32(a[3])
			v += uint32(n)
			return netip.AddrFrom4([4]byte{byte(v >> 24), byte(v >> 16), byte(v >> 8), byte(v)})
		}
		between := func(label string) (string, func(netip.Addr) bool) {
			a, b := at(label+" a"), at(label+" b")
			if b.Less(a) {
				a, b = b, a
			}
			return a.String() + "-" + b.String(), func(x netip.Addr) bool { return !x.Less(a) && !b.Less(x) }
		}
		subnet := manifest.Subnet{CIDR: prefix.String(), Gateway: at("gateway").String()}
		text, inReserved := between("reserved")
		subnet.Reserved = []string{text}
		inRange := func(netip.Addr) bool { return true }
		if rapid.Bool().Draw(t, "ranged") {
			subnet.Range, inRange = between("range")
		}
		sp := parse(t, subnet)
		counts := map[netip.Prefix]int{}
		for a := whole.From(); prefix.Contains(a); a = a.Next() {
			free := a != whole.From() && a != whole.To() && a.String() != subnet.Gateway && !inReserved(a)
			require.Equal(t, free, sp.Refuses(a) == "", "%s refused", a)
			require.Equal(t, free && inRange(a), sp.Automatic(a), "%s automatic", a)
			if free && inRange(a) {
				counts[sp.BlockOf(a)]++
			}
		}
		seen := 0
		for block, ok := sp.BlockFrom(prefix.Addr()); ok; block, ok = sp.BlockFrom(netipx.PrefixLastIP(block).Next()) {
			require.Equal(t, counts[block], sp.Capacity(block), "%s", block)
			require.Positive(t, sp.Capacity(block), "%s is visited for nothing", block)
			seen++
		}
		require.Len(t, counts, seen)
	})
}

func FuzzParse(f *testing.F) {
	f.Add("10.0.0.0/24", "10.0.0.1", "10.0.0.5-10.0.0.9", "10.0.0.7")
	f.Add("fd00::/64", "none", "", "fd00::5-fd00::ffff")
	f.Add("::ffff:10.0.0.0/120", "", "-", "a-b")
	f.Fuzz(func(t *testing.T, cidr, gateway, span, reserved string) {
		sp, err := Parse(manifest.Subnet{CIDR: cidr, Gateway: gateway, Range: span, Reserved: []string{reserved}})
		if err != nil {
			return
		}
		for _, r := range sp.auto {
			require.True(t, sp.Prefix.Contains(r.From()) && sp.Prefix.Contains(r.To()))
			require.Empty(t, sp.Refuses(r.From()))
		}
		if block, ok := sp.BlockFrom(sp.Prefix.Addr()); ok {
			require.Positive(t, sp.Capacity(block))
		}
	})
}
