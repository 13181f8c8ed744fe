package ovsx

import (
	"flag"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/digitalocean/go-openvswitch/ovs"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write golden files")

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}

func text(t *testing.T, flows []*ovs.Flow) string {
	t.Helper()
	var b strings.Builder
	for _, f := range flows {
		line, err := f.MarshalText()
		require.NoError(t, err)
		b.Write(line)
		b.WriteByte('\n')
	}
	return b.String()
}

func TestFlowsOfABridgeAndItsPorts(t *testing.T) {
	mac := "52:54:00:12:34:56"
	both := []netip.Addr{netip.MustParseAddr("172.16.90.2"), netip.MustParseAddr("fd00:90::2")}
	cases := map[string]Rules{
		"secure.flows":    {MAC: mac, Addresses: both, Security: true},
		"dhcp.flows":      {MAC: mac, Addresses: both[:1], Security: true, DHCP4: true},
		"unlimited.flows": {MAC: mac, Addresses: both},
		"rate.flows":      {MAC: mac, RateMbps: 10},
	}
	for name, rules := range cases {
		t.Run(name, func(t *testing.T) {
			flows, err := portFlows(3, Cookie("uid", "nic"), rules)
			require.NoError(t, err)
			golden(t, name, text(t, flows))
		})
	}
	t.Run("base.flows", func(t *testing.T) { golden(t, "base.flows", text(t, baseFlows([]int{1}))) })
}

func TestRulesComeBackAsTheyWereKept(t *testing.T) {
	r := Rules{MAC: "52:54:00:12:34:56", Addresses: []netip.Addr{netip.MustParseAddr("fd00::1")}, DHCP4: true, Security: true, RateMbps: 5}
	got, err := ParseRules(r.String())
	require.NoError(t, err)
	require.Equal(t, r, got)

	for _, bad := range []string{"", "{}", `{"mac":"x"}`, `{"mac":"52:54:00:12:34:56","addresses":["1"]}`} {
		_, err := ParseRules(bad)
		require.Error(t, err, bad)
	}
	_, err = portFlows(1, 1, Rules{MAC: "nonsense"})
	require.Error(t, err)
}

func TestCookiesOfGuestsAreNeverTheBaseFlows(t *testing.T) {
	require.NotEqual(t, Cookie("a", "b"), Cookie("a", "c"))
	require.Equal(t, Cookie("a", "b"), Cookie("a", "b"))
	require.NotZero(t, Cookie("", "")&guestBit)
	require.Zero(t, baseCookie&guestBit)
}

func TestLinkLocalAddressComesFromTheMAC(t *testing.T) {
	mac, err := net.ParseMAC("52:54:00:12:34:56")
	require.NoError(t, err)
	require.Equal(t, "fe80::5054:ff:fe12:3456", linkLocal(mac).String())
}
