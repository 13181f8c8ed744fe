package ovsx

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"burrow.dev/burrow/internal/errs"
	"github.com/digitalocean/go-openvswitch/ovs"
)

// Tables of a bridge, and the priorities in them. The picture is in activities/network.
const (
	tableAdmit  = 0  // by port: who may send at all
	tableGuest  = 10 // what no guest may be; whose ARP and neighbour discovery it is
	tableSource = 11 // whose IPv6 source address it is
	tableSwitch = 20 // learning switch, with the VLANs of the ports

	priorityNever   = 300 // no guest is a DHCP server or a router
	priorityProof   = 250 // neighbour discovery that tells the truth
	priorityForgery = 240 // any other
	priorityOwn     = 200 // from the guest's own addresses
	priorityPort    = 100
	priorityMiss    = 0
)

// Protocol numbers that the library has no name for.
const (
	dhcp4Server, dhcp4Client = 67, 68
	dhcp6Server              = 547

	icmp6RouterAdvertisement    = 134
	icmp6NeighbourSolicitation  = 135
	icmp6NeighbourAdvertisement = 136
	icmp6Redirect               = 137
	icmp6ListenerReport         = 143
)

// SetBaseFlows gives a bridge the flows that stand before any guest's: trusted ports
// (by OpenFlow number) go straight to the switch, everybody else nowhere. One bundle.
func (c *Client) SetBaseFlows(ctx context.Context, bridge string, trusted ...int) error {
	return c.replaceFlows(ctx, bridge, baseCookie, baseFlows(trusted))
}

// SetPortFlows replaces the flows of a guest's port by those of its rules, in one
// bundle, after its meter (for the rate) has been set.
func (c *Client) SetPortFlows(ctx context.Context, bridge string, ofport int, cookie uint64, r Rules) error {
	flows, err := portFlows(ofport, cookie, r)
	if err != nil {
		return errs.NewPermanent("bridge "+bridge, "make flows", err, "")
	}
	if r.RateMbps > 0 {
		if err := c.setMeter(ctx, bridge, ofport, r.RateMbps); err != nil {
			return err
		}
	}
	// Numbers are used again: what an earlier port of this number left goes too.
	return c.replaceFlows(ctx, bridge, cookie, flows, &ovs.MatchFlow{InPort: ofport, Table: ovs.AnyTable})
}

// DeletePortFlows deletes a port's flows by cookie, and the meter of its OpenFlow number
// (0 or less: there is none to look for). None, or no bridge, is success.
func (c *Client) DeletePortFlows(ctx context.Context, bridge string, ofport int, cookie uint64) error {
	err := c.replaceFlows(ctx, bridge, cookie, nil)
	if err == nil && ofport > 0 {
		err = c.deleteMeter(ctx, bridge, ofport)
	}
	if isNotFound(err) {
		return nil
	}
	return err
}

// CountFlows counts the flows with a cookie on a bridge.
func (c *Client) CountFlows(ctx context.Context, bridge string, cookie uint64) (int, error) {
	out, err := run(ctx, nil, "ovs-ofctl", timeoutFlag(), "-OOpenFlow14", "dump-aggregate", bridge, fmt.Sprintf("cookie=%#x/-1", cookie))
	if err != nil {
		return 0, translate("bridge "+bridge, "count flows", err)
	}
	return flowCount(string(out))
}

// replaceFlows puts flows in the place of all that carry the cookie, and of others that
// match, atomically.
func (c *Client) replaceFlows(ctx context.Context, bridge string, cookie uint64, flows []*ovs.Flow, others ...*ovs.MatchFlow) error {
	var failed error
	client := ovs.New(ovs.Protocols([]string{ovs.ProtocolOpenFlow14}),
		ovs.Pipe(func(stdin io.Reader, cmd string, args ...string) ([]byte, error) {
			out, err := run(ctx, stdin, cmd, append([]string{timeoutFlag()}, args...)...)
			failed = err
			return out, err
		}))
	err := client.OpenFlow.AddFlowBundle(bridge, func(tx *ovs.FlowTransaction) error {
		tx.Delete(append(others, &ovs.MatchFlow{Cookie: cookie, Table: ovs.AnyTable})...)
		tx.Add(flows...)
		return tx.Commit()
	})
	if failed != nil {
		err = failed // the library's error keeps only the text
	}
	return translate("bridge "+bridge, "set flows", err)
}

func baseFlows(trusted []int) []*ovs.Flow {
	flows := []*ovs.Flow{
		base(tableAdmit, priorityMiss, ovs.Drop()),
		base(tableGuest, priorityMiss, ovs.Drop()),
		base(tableSource, priorityMiss, ovs.Drop()),
		base(tableSwitch, priorityMiss, ovs.Normal()),
		never(ovs.ProtocolUDPv4, ovs.TransportSourcePort(dhcp4Server)),
		never(ovs.ProtocolUDPv6, ovs.TransportSourcePort(dhcp6Server)),
		never(ovs.ProtocolICMPv6, ovs.ICMP6Type(icmp6RouterAdvertisement)),
		never(ovs.ProtocolICMPv6, ovs.ICMP6Type(icmp6Redirect)),
	}
	for _, port := range trusted {
		f := base(tableAdmit, priorityPort, ovs.Resubmit(0, tableSwitch))
		f.InPort = port
		flows = append(flows, f)
	}
	return flows
}

func base(table, priority int, action ovs.Action) *ovs.Flow {
	return &ovs.Flow{Cookie: baseCookie, Table: table, Priority: priority, Actions: []ovs.Action{action}}
}

// never drops what would make a guest a DHCP server or a router.
func never(protocol ovs.Protocol, match ovs.Match) *ovs.Flow {
	f := base(tableGuest, priorityNever, ovs.Drop())
	f.Protocol, f.Matches = protocol, []ovs.Match{match}
	return f
}

// portFlows are all flows of one guest's port.
func portFlows(ofport int, cookie uint64, r Rules) ([]*ovs.Flow, error) {
	mac, err := net.ParseMAC(r.MAC)
	if err != nil || len(mac) != 6 {
		return nil, fmt.Errorf("MAC %q: %w", r.MAC, errs.ErrInvalid)
	}
	g := guest{ofport: ofport, cookie: cookie, mac: mac}
	first := tableSwitch
	if r.Security {
		first = tableGuest
	}
	admit := []ovs.Action{ovs.Resubmit(0, first)}
	if r.RateMbps > 0 {
		admit = append([]ovs.Action{meter(ofport)}, admit...)
	}
	g.flows = append(g.flows, &ovs.Flow{Cookie: cookie, Table: tableAdmit, Priority: priorityPort, InPort: ofport, Actions: admit})
	if !r.Security {
		return g.flows, nil
	}
	g.neighbours()
	g.address(linkLocal(mac))
	for _, a := range r.Addresses {
		g.address(a.Unmap())
	}
	if r.DHCP4 {
		g.allow(tableGuest, priorityOwn, ovs.ProtocolUDPv4, tableSwitch, ovs.NetworkSource("0.0.0.0"),
			ovs.TransportSourcePort(dhcp4Client), ovs.TransportDestinationPort(dhcp4Server))
	}
	return g.flows, nil
}

// guest collects the flows of one port.
type guest struct {
	ofport int
	cookie uint64
	mac    net.HardwareAddr
	flows  []*ovs.Flow
}

// allow sends what the guest sends from its own MAC, and what matches, on to a table.
func (g *guest) allow(table, priority int, protocol ovs.Protocol, to int, matches ...ovs.Match) {
	g.flows = append(g.flows, &ovs.Flow{
		Cookie: g.cookie, Table: table, Priority: priority, InPort: g.ofport, Protocol: protocol,
		Matches: append([]ovs.Match{ovs.DataLinkSource(g.mac.String())}, matches...),
		Actions: []ovs.Action{ovs.Resubmit(0, to)},
	})
}

// deny drops what the guest sends and what matches.
func (g *guest) deny(priority int, match ovs.Match) {
	g.flows = append(g.flows, &ovs.Flow{
		Cookie: g.cookie, Table: tableGuest, Priority: priority, InPort: g.ofport, Protocol: ovs.ProtocolICMPv6,
		Matches: []ovs.Match{match}, Actions: []ovs.Action{ovs.Drop()},
	})
}

// neighbours is what does not depend on an address: solicitations must name the guest's
// own MAC or none, other IPv6 goes to the source check.
func (g *guest) neighbours() {
	for _, mac := range []net.HardwareAddr{g.mac, noMAC} {
		g.allow(tableGuest, priorityProof, ovs.ProtocolICMPv6, tableSource,
			ovs.ICMP6Type(icmp6NeighbourSolicitation), ovs.NeighborDiscoverySourceLinkLayer(mac))
	}
	g.deny(priorityForgery, ovs.ICMP6Type(icmp6NeighbourSolicitation))
	g.deny(priorityForgery, ovs.ICMP6Type(icmp6NeighbourAdvertisement))
	g.allow(tableGuest, priorityOwn, ovs.ProtocolIPv6, tableSource)
	// Before it has an address, a guest joins the groups of the address it will have.
	g.allow(tableSource, priorityOwn, ovs.ProtocolICMPv6, tableSwitch,
		ovs.ICMP6Type(icmp6ListenerReport), ovs.IPv6Source("::"))
}

// noMAC is what Open vSwitch sees where the option with the MAC is left out.
var noMAC = net.HardwareAddr{0, 0, 0, 0, 0, 0}

// address lets the guest use an address: send from it, answer for it, ask whether
// somebody else has it.
func (g *guest) address(a netip.Addr) {
	text := a.String()
	if a.Is4() {
		own := ovs.ARPSourceHardwareAddress(g.mac)
		g.allow(tableGuest, priorityOwn, ovs.ProtocolARP, tableSwitch, own, ovs.ARPSourceProtocolAddress(text))
		g.allow(tableGuest, priorityOwn, ovs.ProtocolARP, tableSwitch, own, ovs.ARPSourceProtocolAddress("0.0.0.0"), ovs.ARPTargetProtocolAddress(text))
		g.allow(tableGuest, priorityOwn, ovs.ProtocolIPv4, tableSwitch, ovs.NetworkSource(text))
		return
	}
	for _, mac := range []net.HardwareAddr{g.mac, noMAC} {
		g.allow(tableGuest, priorityProof, ovs.ProtocolICMPv6, tableSource, ovs.ICMP6Type(icmp6NeighbourAdvertisement),
			ovs.NeighborDiscoveryTarget(text), ovs.NeighborDiscoveryTargetLinkLayer(mac))
	}
	g.allow(tableSource, priorityOwn, ovs.ProtocolIPv6, tableSwitch, ovs.IPv6Source(text))
	g.allow(tableSource, priorityOwn, ovs.ProtocolICMPv6, tableSwitch, ovs.IPv6Source("::"),
		ovs.ICMP6Type(icmp6NeighbourSolicitation), ovs.NeighborDiscoveryTarget(text))
}

// flowCount reads the reply of dump-aggregate: "… flow_count=3".
func flowCount(out string) (int, error) {
	_, digits, found := strings.Cut(out, "flow_count=")
	if !found {
		return 0, errors.New("no flow count in the reply")
	}
	if end := strings.IndexFunc(digits, func(r rune) bool { return r < '0' || r > '9' }); end >= 0 {
		digits = digits[:end]
	}
	return strconv.Atoi(digits)
}
