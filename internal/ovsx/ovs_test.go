package ovsx_test

import (
	"context"
	"net/netip"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/ovsx"
	"burrow.dev/burrow/test/lab"
)

func TestMain(m *testing.M) { lab.Main(m, lab.OVS) }

func addBridge(t *testing.T, c *ovsx.Client, name, uid string) {
	t.Helper()
	require.NoError(t, c.Transact(t.Context(), "bridge "+name, "add", func(tx *ovsx.Tx) {
		tx.AddBridge(name, ovsx.BridgeSettings{Datapath: c.HostDatapath(), ExternalIDs: map[string]string{ovsx.KeyNetwork: uid}})
	}))
	t.Cleanup(func() {
		require.NoError(t, c.Transact(context.Background(), "bridge "+name, "delete", func(tx *ovsx.Tx) { tx.DeleteBridge(name) }))
	})
}

func addVeth(t *testing.T, name string) {
	t.Helper()
	out, err := exec.Command("ip", "link", "add", name, "type", "veth", "peer", "name", name+"p").CombinedOutput()
	require.NoError(t, err, string(out))
	out, err = exec.Command("sh", "-c", "ip link set "+name+" up; ip link set "+name+"p up").CombinedOutput()
	require.NoError(t, err, string(out))
	t.Cleanup(func() { _ = exec.Command("ip", "link", "del", name).Run() })
}

func TestABridgeIsSecureMarkedAndThere(t *testing.T) {
	defer goleak.VerifyNone(t)
	c := ovsx.New()
	_, err := c.Bridge(t.Context(), "br-a")
	require.ErrorIs(t, err, errs.ErrNotFound)

	addBridge(t, c, "br-a", "uid-a")
	b, err := c.AwaitBridge(t.Context(), "br-a")
	require.NoError(t, err)
	require.Equal(t, "secure", b.FailMode)
	require.Equal(t, "uid-a", b.ExternalIDs[ovsx.KeyNetwork])
	require.Equal(t, c.HostDatapath(), b.Datapath)
	datapath, err := c.Datapath(t.Context(), "br-a")
	require.NoError(t, err)
	require.Equal(t, c.HostDatapath(), datapath)
	_, err = c.Datapath(t.Context(), "br-absent")
	require.ErrorIs(t, err, errs.ErrNotFound)

	found, err := c.Bridges(t.Context(), ovsx.KeyNetwork, "uid-a")
	require.NoError(t, err)
	require.Len(t, found, 1)
	found, err = c.Bridges(t.Context(), ovsx.KeyNetwork, "")
	require.NoError(t, err)
	require.Len(t, found, 1)
	found, err = c.Bridges(t.Context(), ovsx.KeyNetwork, "other")
	require.NoError(t, err)
	require.Empty(t, found)
}

func TestVLANsOfAPortAreSetInOneTransaction(t *testing.T) {
	c := ovsx.New()
	addBridge(t, c, "br-v", "uid-v")
	addVeth(t, "pv")
	cases := []struct {
		name     string
		settings ovsx.PortSettings
		tag      int
		trunks   []int
		mode     string
	}{
		{"untagged", ovsx.PortSettings{}, 0, nil, "access"},
		{"access", ovsx.PortSettings{Tag: 120}, 120, nil, "access"},
		{"trunk", ovsx.PortSettings{Trunks: []int{10, 20}}, 0, []int{10, 20}, "trunk"},
		{"native", ovsx.PortSettings{Tag: 10, Trunks: []int{10, 20}}, 10, []int{10, 20}, "native-untagged"},
		{"untagged again", ovsx.PortSettings{}, 0, nil, "access"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			tc.settings.ExternalIDs = map[string]string{"note": `a "quoted", value=with {braces} ` + tc.name}
			require.NoError(t, c.Transact(t.Context(), "port pv", "set", func(tx *ovsx.Tx) { tx.AddPort("br-v", "pv", tc.settings) }))
			p, err := c.AwaitPort(t.Context(), "pv")
			require.NoError(t, err)
			require.Equal(t, "br-v", p.Bridge)
			require.Equal(t, tc.tag, p.Tag)
			require.Equal(t, tc.trunks, p.Trunks)
			require.Equal(t, tc.mode, p.VLANMode)
			require.Equal(t, tc.settings.ExternalIDs["note"], p.ExternalIDs["note"])
		})
	}
}

func TestATransactionIsTakenWholeOrNotAtAll(t *testing.T) {
	c := ovsx.New()
	err := c.Transact(t.Context(), "bridge br-half", "add", func(tx *ovsx.Tx) {
		tx.AddBridge("br-half", ovsx.BridgeSettings{Datapath: c.HostDatapath()})
		tx.AddPort("br-absent", "p", ovsx.PortSettings{})
	})
	require.ErrorIs(t, err, errs.ErrNotFound)
	require.Contains(t, err.Error(), "bridge br-half: add: ")
	_, err = c.Bridge(t.Context(), "br-half")
	require.ErrorIs(t, err, errs.ErrNotFound)
}

func TestDeletingWhatIsNotThereIsSuccess(t *testing.T) {
	c := ovsx.New()
	require.NoError(t, c.Transact(t.Context(), "all", "delete", func(tx *ovsx.Tx) {
		tx.DeletePort("nothing")
		tx.DeleteBridge("nothing")
	}))
	require.NoError(t, c.DeletePortFlows(t.Context(), "nothing", 3, 7))
	require.NoError(t, c.Transact(t.Context(), "all", "delete", func(*ovsx.Tx) {}))
}

func TestAPortWhoseDeviceIsGoneSaysWhy(t *testing.T) {
	c := ovsx.New()
	addBridge(t, c, "br-g", "uid-g")
	// ovs-vsctl reports the missing device and yet commits: the port stays behind.
	_ = c.Transact(t.Context(), "port gone", "add", func(tx *ovsx.Tx) {
		tx.AddPort("br-g", "gone", ovsx.PortSettings{ExternalIDs: map[string]string{ovsx.KeyServer: "s"}})
	})
	ports, err := c.Ports(t.Context(), ovsx.KeyServer, "s")
	require.NoError(t, err)
	require.Len(t, ports, 1)
	require.Negative(t, ports[0].OFPort)
	require.Contains(t, ports[0].Error, "No such device")
}

// hasBaseFlows looks for the cookie of the flows that a bridge has before any guest.
func hasBaseFlows(t *testing.T, c *ovsx.Client, bridge string) bool {
	t.Helper()
	n, err := c.CountFlows(t.Context(), bridge, 0x627572726f77)
	require.NoError(t, err)
	return n > 0
}

func TestFlowsOfAPortComeAndGoByCookie(t *testing.T) {
	c := ovsx.New()
	addBridge(t, c, "br-f", "uid-f")
	addVeth(t, "pf")
	require.NoError(t, c.Transact(t.Context(), "port pf", "add", func(tx *ovsx.Tx) { tx.AddPort("br-f", "pf", ovsx.PortSettings{}) }))
	p, err := c.AwaitPort(t.Context(), "pf")
	require.NoError(t, err)
	require.False(t, hasBaseFlows(t, c, "br-f"))
	require.NoError(t, c.SetBaseFlows(t.Context(), "br-f", p.OFPort))
	require.True(t, hasBaseFlows(t, c, "br-f"))

	cookie := ovsx.Cookie("uid", "nic")
	rules := ovsx.Rules{
		MAC: "52:54:00:12:34:56", Security: true, DHCP4: true, RateMbps: 10,
		Addresses: []netip.Addr{netip.MustParseAddr("10.0.0.2"), netip.MustParseAddr("fd00::2")},
	}
	require.NoError(t, c.SetPortFlows(t.Context(), "br-f", p.OFPort, cookie, rules))
	n, err := c.CountFlows(t.Context(), "br-f", cookie)
	require.NoError(t, err)
	require.Greater(t, n, 10)
	require.NoError(t, c.SetPortFlows(t.Context(), "br-f", p.OFPort, cookie, rules), "again")
	again, err := c.CountFlows(t.Context(), "br-f", cookie)
	require.NoError(t, err)
	require.Equal(t, n, again)

	require.NoError(t, c.DeletePortFlows(t.Context(), "br-f", p.OFPort, cookie))
	n, err = c.CountFlows(t.Context(), "br-f", cookie)
	require.NoError(t, err)
	require.Zero(t, n)
	require.True(t, hasBaseFlows(t, c, "br-f"), "the base flows stay")
}

func TestACancelledCallReturnsAtOnce(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := ovsx.New().Bridge(ctx, "br-a")
	require.ErrorIs(t, err, context.Canceled)
}

func TestWithoutOpenVSwitchTheErrorSaysWhatToDo(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := ovsx.New().Bridge(t.Context(), "br-a")
	require.Equal(t, errs.Operator, errs.ClassOf(err))
	require.Contains(t, err.Error(), "package openvswitch-switch")
}

func TestFlowsLeftByAnEarlierPortOfThatNumberGo(t *testing.T) {
	c := ovsx.New()
	addBridge(t, c, "br-n", "uid-n")
	require.NoError(t, c.SetBaseFlows(t.Context(), "br-n", 1))
	rules := ovsx.Rules{MAC: "52:54:00:12:34:56", Security: true}
	earlier, later := ovsx.Cookie("earlier", "nic"), ovsx.Cookie("later", "nic")
	require.NoError(t, c.SetPortFlows(t.Context(), "br-n", 7, earlier, rules))
	require.NoError(t, c.SetPortFlows(t.Context(), "br-n", 7, later, rules))
	n, err := c.CountFlows(t.Context(), "br-n", earlier)
	require.NoError(t, err)
	require.Zero(t, n)
	n, err = c.CountFlows(t.Context(), "br-n", later)
	require.NoError(t, err)
	require.NotZero(t, n)
	require.True(t, hasBaseFlows(t, c, "br-n"))
}
