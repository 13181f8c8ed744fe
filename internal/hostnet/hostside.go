package hostnet

import (
	"context"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"github.com/vishvananda/netlink"
)

// ensureHost writes our table of the host's firewall from the states of all networks, and
// lets the host forward when a network needs it.
func (s *Stack) ensureHost(ctx context.Context, _ state) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	all, err := s.states()
	if err != nil {
		return err
	}
	var uplinks []uplinkRule
	var local []netip.Addr
	for _, st := range all {
		if st.Slot >= 0 {
			uplinks = append(uplinks, uplinkRule{UplinkDevice(st.Network.UID), uplinkSubnet(st.Slot)})
			local = append(local, onThisHost(forwarders(st.Network))...)
		}
	}
	if len(uplinks) == 0 {
		if exists, err := hasTable(ctx, "inet"); err != nil || !exists {
			return err
		}
	} else if err := s.claimTable(ctx, "inet"); err != nil {
		return err
	}
	if err := nft(ctx, hostRules(uplinks, unique(local))); err != nil {
		return err
	}
	if len(uplinks) == 0 {
		delete(s.tables, "inet") // whoever makes one of that name from now on owns it
		return nil
	}
	return s.forward()
}

// forward lets the host forward IPv4, and says so when that is a change. It stays so:
// others may rely on it by the time the last network goes.
func (s *Stack) forward() error {
	const name = "net/ipv4/ip_forward"
	now, err := os.ReadFile(filepath.Join("/proc/sys", name))
	if err != nil || strings.TrimSpace(string(now)) == "1" {
		return err
	}
	s.log.Info("switch IPv4 forwarding of this host on, for NAT networks", "setting", "net.ipv4.ip_forward")
	return setSysctl(name, "1")
}

// dropGuards deletes the table of guards with the last network.
func (s *Stack) dropGuards(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	all, err := s.states()
	if err != nil || len(all) > 0 {
		return err
	}
	if exists, err := hasTable(ctx, "netdev"); err != nil || !exists {
		return err
	}
	delete(s.tables, "netdev")
	return nft(ctx, deleteTable("netdev"))
}

// forwarders are who answers for a network what its own DNS does not know.
func forwarders(n Network) []netip.Addr {
	switch {
	case !n.NAT:
		return nil // nobody can be reached
	case len(n.Forwarders) > 0:
		return n.Forwarders
	default:
		return Resolvers()
	}
}

// onThisHost picks the addresses that are the host's own.
func onThisHost(addresses []netip.Addr) []netip.Addr {
	own, err := netlink.AddrList(nil, netlink.FAMILY_ALL)
	if err != nil {
		return nil
	}
	var found []netip.Addr
	for _, a := range own {
		p, ok := prefixOf(a)
		if !ok {
			continue
		}
		for _, wanted := range addresses {
			if wanted == p.Addr() {
				found = append(found, wanted)
			}
		}
	}
	return found
}

func unique(addresses []netip.Addr) []netip.Addr {
	seen := map[netip.Addr]bool{}
	var kept []netip.Addr
	for _, a := range addresses {
		if !seen[a] {
			seen[a] = true
			kept = append(kept, a)
		}
	}
	return kept
}
