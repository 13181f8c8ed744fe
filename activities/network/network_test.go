package network_test

import (
	"net/netip"
	"os/exec"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"burrow.dev/burrow/activities/network"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/hostnet"
	"burrow.dev/burrow/manifest"
)

// outside is a network beyond the host, which knows no way to the guests'.
func outside(t *testing.T) {
	t.Helper()
	sh(t, `ip netns add outside
		ip link add out0 type veth peer name eth0 netns outside
		ip addr add 203.0.113.1/24 dev out0
		ip link set out0 up
		ip -n outside addr add 203.0.113.9/24 dev eth0
		ip -n outside link set eth0 up
		ip -n outside link set lo up`)
	t.Cleanup(func() { _ = exec.Command("sh", "-c", "ip link del out0; ip netns del outside").Run() })
}

func TestAGuestReachesItsGatewayTheOutsideAndItsNeighbours(t *testing.T) {
	outside(t)
	s := newSite(t)
	net := s.network(t, "db-net", nil, "")
	db, web := s.newGuest(t, "db", net, nil), s.newGuest(t, "web", net, func(p *manifest.Port) { p.Addresses = []string{"172.16.90.3/24"} })
	s.provision(t, db)
	s.provision(t, web)

	require.True(t, echoes(t, db.ns, "172.16.90.1"), "the gateway answers a ping")

	serve(t, "outside", "203.0.113.9:80")
	require.Equal(t, "203.0.113.1", db.reaches(t, "203.0.113.9:80"), "the outside sees the host's address")

	serve(t, web.ns, "172.16.90.3:80")
	require.Equal(t, "172.16.90.2", db.reaches(t, "172.16.90.3:80"), "guests see each other's own addresses")
}

func TestNamesOfServersResolveWhileTheyAreWired(t *testing.T) {
	s := newSite(t)
	net := s.network(t, "db-net", func(n *manifest.NetworkStatus) {
		n.Subnets = append(n.Subnets, manifest.Subnet{CIDR: "fd00:90::/64", Gateway: "fd00:90::1"})
	}, "")
	both := func(four, six string) func(*manifest.Port) {
		return func(p *manifest.Port) { p.Addresses = []string{four, six} }
	}
	db, web := s.newGuest(t, "db", net, both("172.16.90.2/24", "fd00:90::2/64")), s.newGuest(t, "web", net, both("172.16.90.3/24", "fd00:90::3/64"))
	s.provision(t, db)
	s.provision(t, web)

	for _, name := range []string{"web.db-net", "web.db-net."} {
		found, err := db.lookup(t, name)
		require.NoError(t, err, name)
		require.ElementsMatch(t, []string{"172.16.90.3", "fd00:90::3"}, found)
	}
	names, err := reverse(t, db, "172.16.90.3")
	require.NoError(t, err)
	require.Contains(t, names, "web.db-net.")

	_, err = s.Unwire(t.Context(), network.UnwireIn{Server: web.server, Ports: web.ports})
	require.NoError(t, err)
	eventually(t, func() bool { _, err := db.lookup(t, "web.db-net"); return err != nil })
	_, err = db.lookup(t, "db.db-net")
	require.NoError(t, err, "the others stay")
}

func TestOtherNamesAreAskedOfTheForwarders(t *testing.T) {
	outside(t)
	startResolver(t, "outside", "203.0.113.9")
	s := newSite(t)
	net := s.network(t, "db-net", nil, `{"dns":{"forwarders":["203.0.113.9"]}}`)
	db := s.newGuest(t, "db", net, nil)
	s.provision(t, db)
	found, err := db.lookup(t, "www.outside.example")
	require.NoError(t, err)
	require.Equal(t, []string{"203.0.113.80"}, found)
	_, err = db.lookup(t, "absent.db-net")
	require.Error(t, err, "the network's own domain is not asked for outside")
}

func TestIsolatedNetworksReachNobodyOutside(t *testing.T) {
	outside(t)
	s := newSite(t)
	net := s.network(t, "quiet", isolated, "")
	db := s.newGuest(t, "db", net, nil)
	s.provision(t, db)
	serve(t, "outside", "203.0.113.9:80")
	serve(t, "", "203.0.113.1:80")
	db.doesNotReach(t, "203.0.113.9:80")
	db.doesNotReach(t, "203.0.113.1:80")
	require.True(t, echoes(t, db.ns, "172.16.90.1"), "their gateway they do reach")
}

func isolated(n *manifest.NetworkStatus) { n.Mode = manifest.ModeIsolated }

func TestNoGuestReachesTheHost(t *testing.T) {
	outside(t)
	s := newSite(t)
	net := s.network(t, "db-net", nil, "")
	other := s.network(t, "other-net", func(n *manifest.NetworkStatus) {
		n.Subnets = []manifest.Subnet{{CIDR: "172.16.91.0/24", Gateway: "172.16.91.1"}}
	}, "")
	db := s.newGuest(t, "db", net, nil)
	lone := s.newGuest(t, "lone", other, func(p *manifest.Port) {
		p.Addresses, p.Gateways = []string{"172.16.91.2/24"}, []string{"172.16.91.1"}
	})
	s.provision(t, db)
	s.provision(t, lone)
	serve(t, "", "0.0.0.0:8080")
	serve(t, "outside", "203.0.113.9:80")
	serve(t, lone.ns, "172.16.91.2:80")
	serve(t, manifest.NamespaceName("db-net"), "172.16.90.1:8080")
	require.NotEmpty(t, db.reaches(t, "203.0.113.9:80"), "the way out is open")

	uplink := addressOf(t, "", hostnet.UplinkDevice(net.Metadata.UID))
	theirs := addressOf(t, "", hostnet.UplinkDevice(other.Metadata.UID))
	for name, address := range map[string]string{
		"by its own address": "203.0.113.1:8080", "by its end of the uplink": uplink + ":8080",
		"by another network's uplink": theirs + ":8080", "in another network": "172.16.91.2:80",
		"in another network's namespace": netip.MustParseAddr(theirs).Next().String() + ":53",
		"by a service on its gateway":    "172.16.90.1:8080",
	} {
		t.Run(name, func(t *testing.T) { db.doesNotReach(t, address) })
	}
	t.Run("by the MAC of its own device", func(t *testing.T) {
		// The kernel sees what a userspace bridge reads; without an answer to it, even.
		device := db.port().Device
		sh(t, "sysctl -qw net.ipv4.conf.all.rp_filter=0 net.ipv4.conf."+device+".rp_filter=0")
		mac := macOf(sh(t, "cat /sys/class/net/"+device+"/address"))
		heard := receive(t, "203.0.113.1:8080")
		packet := udp4("172.16.90.2", "203.0.113.1", 9, 8080, "hello")
		send(t, link(t, db.ns, "eth0"), ethernet(mac, macOf(db.port().MAC), 0, 0x0800, packet))
		require.Empty(t, heard(quiet))
	})
}

func TestOverlappingNetworksAreDialledEachInItsOwnNamespace(t *testing.T) {
	s := newSite(t)
	var guests []*guest
	for _, name := range []string{"red", "blue"} {
		net := s.network(t, name, isolated, "")
		g := s.newGuest(t, "in-"+name, net, nil)
		s.provision(t, g)
		guests = append(guests, g)
		answer(t, g.ns, "172.16.90.2:22", name)
	}
	for range 5 {
		for _, name := range []string{"red", "blue"} {
			conn, err := s.DialNetwork(t.Context(), name, "172.16.90.2:22")
			require.NoError(t, err)
			require.Equal(t, name, readAll(t, conn))
		}
	}
	for _, bad := range []string{"10.0.0.1:22", "172.16.90.2", "db:22", "127.0.0.1:22"} {
		_, err := s.DialNetwork(t.Context(), "red", bad)
		require.Error(t, err, bad)
		require.Equal(t, errs.Permanent, errs.ClassOf(err), bad)
	}
	_, err := s.DialNetwork(t.Context(), "green", "172.16.90.2:22")
	require.ErrorIs(t, err, errs.ErrNotFound)
	require.Len(t, guests, 2)
}

func TestANetworkWithoutGatewayCannotBeDialledAndSaysSo(t *testing.T) {
	s := newSite(t)
	net := s.network(t, "bare", func(n *manifest.NetworkStatus) {
		n.Mode, n.Subnets = manifest.ModeIsolated, []manifest.Subnet{{CIDR: "172.16.90.0/24", Gateway: "none"}}
	}, "")
	g := s.newGuest(t, "db", net, func(p *manifest.Port) { p.Gateways = nil })
	s.provision(t, g)
	_, err := s.DialNetwork(t.Context(), "bare", "172.16.90.2:22")
	require.ErrorContains(t, err, "no gateway")
	require.Equal(t, errs.Permanent, errs.ClassOf(err))
}

func TestTheLastReferenceTakesTheNetworkDownAndNothingIsLeft(t *testing.T) {
	before := inventory(t)
	s := newSite(t)
	net := s.network(t, "db-net", nil, "")
	db, web := s.newGuest(t, "db", net, nil), s.newGuest(t, "web", net, func(p *manifest.Port) { p.Addresses = []string{"172.16.90.3/24"} })
	guestsOnly := inventory(t)
	s.provision(t, db)
	s.provision(t, web)
	for _, g := range []*guest{db, web} {
		// Twice: an undo may run again, and undoing nothing is success.
		for range 2 {
			_, err := s.Unwire(t.Context(), network.UnwireIn{Server: g.server, Ports: g.ports})
			require.NoError(t, err)
			_, err = s.Release(t.Context(), network.ReleaseIn{Server: g.server, Ports: g.ports})
			require.NoError(t, err)
		}
		if g == db {
			_, err := s.sw.Bridge(t.Context(), net.Status.Network.Bridge)
			require.NoError(t, err, "web still refers to it")
			require.True(t, echoes(t, web.ns, "172.16.90.1"))
		}
	}
	require.Equal(t, guestsOnly, inventory(t))
	require.NotEqual(t, before, guestsOnly)
}

func TestANetworkInUseIsNotRemoved(t *testing.T) {
	s := newSite(t)
	net := s.network(t, "db-net", isolated, "")
	db := s.newGuest(t, "db", net, nil)
	s.provision(t, db)
	s.record(db, manifest.PhaseRunning)
	_, err := s.Remove(t.Context(), network.RemoveIn{Name: "db-net", UID: net.Metadata.UID})
	require.ErrorIs(t, err, errs.ErrBusy)
	require.Contains(t, err.Error(), "server/db")
	require.True(t, echoes(t, db.ns, "172.16.90.1"))
}

func TestWiringAGuestThatIsOffSaysSo(t *testing.T) {
	s := newSite(t)
	net := s.network(t, "db-net", isolated, "")
	db := s.newGuest(t, "db", net, nil)
	_, err := s.Ensure(t.Context(), network.EnsureIn{Server: db.server, Ports: db.ports})
	require.NoError(t, err)
	absent := db.ports[0]
	absent.Device = "bwabsent"
	out, err := s.Wire(t.Context(), network.WireIn{Server: db.server, Ports: []manifest.Port{absent}})
	require.NoError(t, err)
	require.True(t, out.Off)
}

func TestARateHolds(t *testing.T) {
	s := newSite(t)
	net := s.network(t, "db-net", isolated, "")
	db := s.newGuest(t, "db", net, func(p *manifest.Port) { p.RateMbps = 20 })
	web := s.newGuest(t, "web", net, func(p *manifest.Port) { p.Addresses = []string{"172.16.90.3/24"} })
	s.provision(t, db)
	s.provision(t, web)
	require.Less(t, sendRate(t, db, web), 40.0, "Mbit/s of a guest with 20")
	require.Greater(t, sendRate(t, web, db), 60.0, "Mbit/s of a guest without limit")
}

func TestAResolverOnTheHostItselfServesTheNetworkAndNotItsGuests(t *testing.T) {
	outside(t)
	startResolver(t, "", "203.0.113.1")
	s := newSite(t)
	net := s.network(t, "db-net", nil, `{"dns":{"forwarders":["203.0.113.1"]}}`)
	db := s.newGuest(t, "db", net, nil)
	s.provision(t, db)
	found, err := db.lookup(t, "www.outside.example")
	require.NoError(t, err)
	require.Equal(t, []string{"203.0.113.80"}, found)
	db.doesNotReach(t, "203.0.113.1:53")
}

func TestSubnetsOfOneNetworkMeetAtItsGateway(t *testing.T) {
	s := newSite(t)
	net := s.network(t, "wide", func(n *manifest.NetworkStatus) {
		n.Mode = manifest.ModeIsolated
		n.Subnets = append(n.Subnets, manifest.Subnet{CIDR: "10.7.0.0/16", Gateway: "10.7.0.1"})
	}, "")
	a := s.newGuest(t, "a", net, nil)
	b := s.newGuest(t, "b", net, func(p *manifest.Port) { p.Addresses, p.Gateways = []string{"10.7.3.4/16"}, []string{"10.7.0.1"} })
	s.provision(t, a)
	s.provision(t, b)
	serve(t, b.ns, "10.7.3.4:80")
	require.Equal(t, "172.16.90.2", a.reaches(t, "10.7.3.4:80"))
	_, err := fetch(t, a.ns, "192.0.2.1:80", patience)
	require.ErrorIs(t, err, syscall.ENETUNREACH, "and what is nowhere is told to be nowhere")
}
