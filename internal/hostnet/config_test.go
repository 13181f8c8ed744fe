package hostnet

import (
	"flag"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write golden files")

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}

func addrs(all ...string) []netip.Addr {
	var parsed []netip.Addr
	for _, a := range all {
		parsed = append(parsed, netip.MustParseAddr(a))
	}
	return parsed
}

func TestConfigurationOfDNSAndDHCP(t *testing.T) {
	n := Network{
		UID: "u", Name: "db-net", Namespace: "bw-db-net", NAT: true, MTU: 1400, Domain: "db-net",
		Gateways: []netip.Prefix{netip.MustParsePrefix("172.16.90.1/22"), netip.MustParsePrefix("fd00:90::1/64")},
	}
	golden(t, "dns.conf", dnsmasqConf(n, "/run/burrow/networks/u", "dnsmasq", addrs("192.0.2.53", "198.51.100.53")))
	n.DHCP = true
	golden(t, "dhcp.conf", dnsmasqConf(n, "/run/burrow/networks/u", "nobody", nil))
}

func TestRulesOfTheFirewalls(t *testing.T) {
	golden(t, "namespace-nat.nft", namespaceRules(true, addrs("192.0.2.2")))
	golden(t, "namespace-isolated.nft", namespaceRules(false, nil))
	golden(t, "host.nft", hostRules([]uplinkRule{{"bwu2", uplinkSubnet(900)}, {"bwu1", uplinkSubnet(300)}}, addrs("192.0.2.2")))
	golden(t, "host-none.nft", hostRules(nil, nil))
}

func TestUplinksNeverOverlap(t *testing.T) {
	seen := map[netip.Prefix]bool{}
	var taken []netip.Prefix
	for i := range 300 {
		// The same uid each time: every one must move on from the same place.
		slot, err := chooseSlot("the same uid", taken)
		require.NoError(t, err)
		p := uplinkSubnet(slot)
		require.False(t, seen[p], i)
		require.False(t, overlapsAny(p, reservedSlots))
		require.True(t, linkLocal4.Contains(p.Addr()))
		host, inner := uplinkAddresses(slot)
		require.True(t, p.Contains(host.Addr()) && p.Contains(inner.Addr()))
		require.NotEqual(t, p.Addr(), host.Addr())
		require.NotEqual(t, host, inner)
		seen[p] = true
		taken = append(taken, p)
	}
	a, err := chooseSlot("a", nil)
	require.NoError(t, err)
	b, err := chooseSlot("a", nil)
	require.NoError(t, err)
	require.Equal(t, a, b, "the same network, the same place")
	_, err = chooseSlot("a", []netip.Prefix{linkLocal4})
	require.ErrorIs(t, err, errNoSlot)
}

func TestResolversAreThoseANamespaceCanReach(t *testing.T) {
	write := func(text string) string {
		path := filepath.Join(t.TempDir(), "resolv.conf")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
		return path
	}
	stub := write("# stub\nnameserver 127.0.0.53\noptions edns0\n")
	real := write("nameserver 192.0.2.53\nnameserver 2001:db8::53\nnameserver fe80::1%eth0\nnameserver nonsense\nnameserver\nnameserver 0.0.0.0\n  nameserver\t198.51.100.53 # second\n")
	require.Equal(t, addrs("192.0.2.53", "198.51.100.53"), resolversOf([]string{stub, real}))
	require.Empty(t, resolversOf([]string{stub, "/absent"}))
}

func FuzzResolvConf(f *testing.F) {
	f.Add([]byte("nameserver 192.0.2.53\n"))
	f.Add([]byte("nameserver ::ffff:127.0.0.1\nnameserver 1.2.3"))
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, a := range parseResolvConf(text) {
			require.True(t, a.Is4() && !a.IsLoopback())
		}
	})
}

// FuzzNames tries to end a line or to begin an option by way of a name or a MAC.
func FuzzNames(f *testing.F) {
	f.Add("db", "52:54:00:12:34:56")
	f.Add("db\n0.0.0.0 evil", "52:54:00:12:34:56")
	f.Add("db", "52:54:00:12:34:56,set:x\n")
	f.Add("db,ignore", "")
	f.Fuzz(func(t *testing.T, host, mac string) {
		hosts, leases, err := nameFiles([]Name{{Host: host, MAC: mac, Addresses: addrs("10.0.0.2", "fd00::2")}}, Network{Domain: "net"})
		if err != nil {
			return
		}
		require.Equal(t, 2, strings.Count(hosts, "\n"))
		require.Equal(t, 1, strings.Count(leases, "\n"))
		require.Equal(t, 4, strings.Count(leases, ","))
	})
}

func TestNamesOfANIC(t *testing.T) {
	hosts, leases, err := nameFiles([]Name{
		{Host: "db", MAC: "52:54:00:12:34:56", Addresses: addrs("10.0.0.2", "fd00::2")},
		{Host: "db", MAC: "52:54:00:12:34:57"},
	}, Network{Domain: "db-net"})
	require.NoError(t, err)
	require.Equal(t, "10.0.0.2 db.db-net db\nfd00::2 db.db-net db\n", hosts)
	require.Equal(t, "52:54:00:12:34:56,10.0.0.2,[fd00::2],db,infinite\n", leases)
}

func TestNetworksThatWouldWriteAnotherLineAreRefused(t *testing.T) {
	good := Network{UID: "u-1", Name: "n", Namespace: "bw-n", Domain: "n.example"}
	require.NoError(t, good.check())
	for name, change := range map[string]func(*Network){
		"uid":       func(n *Network) { n.UID = "../etc" },
		"empty uid": func(n *Network) { n.UID = "" },
		"name":      func(n *Network) { n.Name = "n\nserver=1.2.3.4" },
		"namespace": func(n *Network) { n.Namespace = "../../etc/passwd" },
		"domain":    func(n *Network) { n.Domain = "n/1.2.3.4" },
	} {
		bad := good
		change(&bad)
		require.Error(t, bad.check(), name)
	}
}
