package network_test

import (
	"bytes"
	"fmt"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"burrow.dev/burrow/manifest"
)

// TestASpoofingGuestGetsNothingThrough sends frames as a guest would that is not what it
// says, and listens at its neighbour and at the gateway; the honest frame of each kind
// shows that the listeners hear.
func TestASpoofingGuestGetsNothingThrough(t *testing.T) {
	s := newSite(t)
	dual := func(four, six string) func(*manifest.Port) {
		return func(p *manifest.Port) { p.Addresses, p.Gateways = []string{four, six}, []string{"172.16.90.1"} }
	}
	net4 := s.network(t, "db-net", func(n *manifest.NetworkStatus) {
		n.Mode = manifest.ModeIsolated
		n.Subnets = append(n.Subnets, manifest.Subnet{CIDR: "fd00:90::/64", Gateway: "fd00:90::1"})
	}, "")
	mallory := s.newGuest(t, "mallory", net4, dual("172.16.90.66/24", "fd00:90::66/64"))
	victim := s.newGuest(t, "victim", net4, dual("172.16.90.2/24", "fd00:90::2/64"))
	s.provision(t, mallory)
	s.provision(t, victim)

	own, other := macOf(mallory.port().MAC), macOf("52:54:00:00:00:01")
	from := link(t, mallory.ns, "eth0")
	at := map[string]int{
		"neighbour": link(t, victim.ns, "eth0"),
		"gateway":   link(t, manifest.NamespaceName("db-net"), "gateway"),
	}
	nd := func(target string, option byte, mac net.HardwareAddr) []byte {
		body := append([]byte{0x60, 0, 0, 0}, net.ParseIP(target).To16()...)
		return append(append(body, option, 1), mac...)
	}
	mark := func(i int) string { return fmt.Sprintf("frame %03d end", i) }
	frames := []struct {
		name    string
		through bool
		frame   func(data string) []byte
	}{
		{"its own IPv4", true, func(d string) []byte {
			return ethernet(broadcast, own, 0, 0x0800, udp4("172.16.90.66", "255.255.255.255", 9, 9, d))
		}},
		{"another's IPv4", false, func(d string) []byte {
			return ethernet(broadcast, own, 0, 0x0800, udp4("172.16.90.2", "255.255.255.255", 9, 9, d))
		}},
		{"another's MAC", false, func(d string) []byte {
			return ethernet(broadcast, other, 0, 0x0800, udp4("172.16.90.66", "255.255.255.255", 9, 9, d))
		}},
		{"its own ARP", true, func(d string) []byte {
			return ethernet(broadcast, own, 0, 0x0806, append(arp(2, own, "172.16.90.66", "172.16.90.66"), d...))
		}},
		{"ARP for another's address", false, func(d string) []byte {
			return ethernet(broadcast, own, 0, 0x0806, append(arp(2, own, "172.16.90.1", "172.16.90.1"), d...))
		}},
		{"ARP with another's MAC inside", false, func(d string) []byte {
			return ethernet(broadcast, own, 0, 0x0806, append(arp(2, other, "172.16.90.66", "172.16.90.66"), d...))
		}},
		{"ARP asking whether its address is free", true, func(d string) []byte {
			return ethernet(broadcast, own, 0, 0x0806, append(arp(1, own, "0.0.0.0", "172.16.90.66"), d...))
		}},
		{"its own IPv6", true, func(d string) []byte {
			return ethernet(broadcast, own, 0, 0x86dd, icmp6("fd00:90::66", "ff02::1", 128, append([]byte{0, 0, 0, 0}, d...)))
		}},
		{"another's IPv6", false, func(d string) []byte {
			return ethernet(broadcast, own, 0, 0x86dd, icmp6("fd00:90::2", "ff02::1", 128, append([]byte{0, 0, 0, 0}, d...)))
		}},
		{"a neighbour advertisement for itself", true, func(d string) []byte {
			return ethernet(broadcast, own, 0, 0x86dd, icmp6("fd00:90::66", "ff02::1", 136, append(nd("fd00:90::66", 2, own), d...)))
		}},
		{"a neighbour advertisement for the gateway", false, func(d string) []byte {
			return ethernet(broadcast, own, 0, 0x86dd, icmp6("fd00:90::66", "ff02::1", 136, append(nd("fd00:90::1", 2, own), d...)))
		}},
		{"a neighbour solicitation with another's MAC", false, func(d string) []byte {
			return ethernet(broadcast, own, 0, 0x86dd, icmp6("fd00:90::66", "ff02::1", 135, append(nd("fd00:90::1", 1, other), d...)))
		}},
		{"a router advertisement", false, func(d string) []byte {
			return ethernet(broadcast, own, 0, 0x86dd, icmp6("fe80::1", "ff02::1", 134, append(make([]byte, 12), d...)))
		}},
		{"a DHCP offer", false, func(d string) []byte {
			return ethernet(broadcast, own, 0, 0x0800, udp4("172.16.90.66", "255.255.255.255", 67, 68, d))
		}},
		{"a DHCP request on a network without DHCP", false, func(d string) []byte {
			return ethernet(broadcast, own, 0, 0x0800, udp4("0.0.0.0", "255.255.255.255", 68, 67, d))
		}},
		{"a VLAN of its own choice", false, func(d string) []byte {
			return ethernet(broadcast, own, 7, 0x0800, udp4("172.16.90.66", "255.255.255.255", 9, 9, d))
		}},
		{"no protocol anybody knows", false, func(d string) []byte { return ethernet(broadcast, own, 0, 0x88b5, []byte(d)) }},
	}
	for i, f := range frames {
		send(t, from, f.frame(mark(i)))
	}
	for where, fd := range at {
		heard := capture(t, fd, quiet, func(b []byte) bool { return bytes.Contains(b, []byte("frame ")) })
		for i, f := range frames {
			found := false
			for _, b := range heard {
				found = found || bytes.Contains(b, []byte(mark(i)))
			}
			require.Equal(t, f.through, found, "%s heard at the %s", f.name, where)
		}
	}
}

func TestWithoutPortSecurityAGuestMaySendAnything(t *testing.T) {
	s := newSite(t)
	rec := s.network(t, "db-net", isolated, "")
	free := func(p *manifest.Port) { p.Security = false }
	a, b := s.newGuest(t, "a", rec, free), s.newGuest(t, "b", rec, func(p *manifest.Port) { free(p); p.Addresses = []string{"172.16.90.3/24"} })
	s.provision(t, a)
	s.provision(t, b)
	fd := link(t, b.ns, "eth0")
	send(t, link(t, a.ns, "eth0"), ethernet(broadcast, macOf("02:00:00:00:00:09"), 0, 0x88b5, []byte("anything")))
	require.Len(t, capture(t, fd, quiet, func(f []byte) bool { return bytes.Contains(f, []byte("anything")) }), 1)
}

func TestVLANsAreKeptFromTheFirstPacket(t *testing.T) {
	s := newSite(t)
	rec := s.network(t, "lan", isolated, "")
	make := func(name string, last int, vlans []int, native int) *guest {
		g := s.newGuest(t, name, rec, func(p *manifest.Port) {
			p.Addresses = []string{fmt.Sprintf("172.16.90.%d/24", last)}
			p.VLANs, p.NativeVLAN, p.Gateways = vlans, native, nil
		})
		return g
	}
	ten := make("ten", 10, []int{10}, 0)
	twenty := make("twenty", 20, []int{20}, 0)
	trunk := make("trunk", 30, []int{10, 20}, 0)
	native := make("native", 40, []int{10, 20}, 10)
	all := []*guest{ten, twenty, trunk, native}
	ears := map[string]int{}
	for _, g := range all {
		ears[g.server.Name] = link(t, g.ns, "eth0")
	}
	ears["gateway"] = -1
	ip := func(g *guest, data string) []byte {
		return udp4(must(parsePrefix(g.port().Addresses[0])), "255.255.255.255", 9, 9, data)
	}
	// Wired last, and it talks all the while: nothing may leak before it has its VLAN.
	for _, g := range all[1:] {
		s.provision(t, g)
	}
	ears["gateway"] = link(t, manifest.NamespaceName("lan"), "gateway")
	stop := chatter(t, ten, ethernet(broadcast, macOf(ten.port().MAC), 0, 0x0800, ip(ten, "from ten")))
	s.provision(t, ten)
	stop()
	ears["ten"] = link(t, ten.ns, "eth0") // the one before is full of its own talk

	say := func(g *guest, vlan int, data string) {
		send(t, ears[g.server.Name], ethernet(broadcast, macOf(g.port().MAC), vlan, 0x0800, ip(g, data)))
	}
	say(ten, 0, "from ten")
	say(twenty, 0, "from twenty")
	say(trunk, 10, "trunk on 10")
	say(trunk, 20, "trunk on 20")
	say(trunk, 30, "trunk on 30")
	say(trunk, 0, "trunk untagged")
	say(native, 0, "native untagged")
	say(native, 20, "native on 20")
	heard := map[string]map[string]int{}
	for where, fd := range ears {
		heard[where] = map[string]int{}
		for _, f := range capture(t, fd, quiet, func(f []byte) bool { return bytes.Contains(f, []byte{0, 9, 0, 9}) }) {
			data := bytes.TrimRight(f[bytes.Index(f, []byte{0, 9, 0, 9})+8:], "\x00")
			heard[where][string(data)] = tagOf(f)
		}
	}
	require.Equal(t, map[string]map[string]int{
		"ten":     {"trunk on 10": 0, "native untagged": 0},
		"twenty":  {"trunk on 20": 0, "native on 20": 0},
		"trunk":   {"from ten": 10, "from twenty": 20, "native untagged": 10, "native on 20": 20},
		"native":  {"from ten": 0, "from twenty": 20, "trunk on 10": 0, "trunk on 20": 20},
		"gateway": {},
	}, heard)
}
