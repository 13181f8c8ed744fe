package hostnet

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/vishvananda/netlink"

	"burrow.dev/burrow/internal/errs"
)

// DefaultRunDir is where the state of the host's networks is kept: it goes with a reboot.
const DefaultRunDir = "/run/burrow/networks"

// Stack is all networks' parts on this host. Calls for different networks may run side by
// side; calls for one network are its caller's to put in order.
type Stack struct {
	runDir string
	log    *slog.Logger
	// mu guards what networks share: uplink slots, the host's tables.
	mu sync.Mutex
	// tables are those of our name in the host's firewall that were found to be ours.
	tables map[string]bool
}

// New makes the stack. runDir is an absolute path, usually [DefaultRunDir].
func New(runDir string, log *slog.Logger) *Stack { return &Stack{runDir: runDir, log: log, tables: map[string]bool{}} }

// Ensure makes a network stand: namespace, gateway, NAT, DNS. Everything that is there
// already is checked and mended; names of servers that were set stay set.
//
// errors.Is errs.ErrNotManaged (Permanent): a namespace, device or table of that name was
// made by somebody else, and is left as it was.
func (s *Stack) Ensure(ctx context.Context, n Network) error {
	st, err := s.claim(ctx, n)
	if err != nil {
		return refusal(n.ref(), "claim its namespace "+n.Namespace, err)
	}
	steps := []struct {
		action string
		do     func(context.Context, state) error
	}{
		{"make namespace " + n.Namespace, s.ensureNamespace},
		{"make its gateway", s.ensureGateway},
		{"make its uplink", s.ensureUplink},
		{"set the firewall of namespace " + n.Namespace, s.ensureFirewall},
		{"set the host's NAT", s.ensureHost},
		{"start its DNS", s.ensureDNS},
	}
	for _, step := range steps {
		if err := step.do(ctx, *st); err != nil {
			return refusal(n.ref(), step.action, err)
		}
	}
	return nil
}

// claim writes down what is going to be made, before it is. A namespace that is there
// and was not written down is not ours.
func (s *Stack) claim(ctx context.Context, n Network) (*state, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st, err := s.load(n.UID)
	if err != nil {
		return nil, err
	}
	if err := n.check(); err != nil {
		return nil, err
	}
	if st == nil {
		if err := refuseForeign(n); err != nil {
			return nil, err
		}
		st = &state{Slot: -1}
	}
	if st.Network.Namespace != "" && st.Network.Namespace != n.Namespace {
		return nil, fmt.Errorf("it stands in namespace %s: %w", st.Network.Namespace, errs.ErrConflict)
	}
	st.Network = n
	if !n.NAT {
		st.Slot = -1
	} else if st.Slot < 0 {
		if st.Slot, err = s.freeSlot(n.UID); err != nil {
			return nil, err
		}
	}
	return st, s.save(*st)
}

// refuseForeign refuses names that somebody else has taken. The mark on the gateway's
// device tells what is ours where the state was lost.
func refuseForeign(n Network) error {
	ours := false
	for _, device := range []string{GatewayDevice(n.UID), UplinkDevice(n.UID)} {
		link, err := netlink.LinkByName(device)
		switch {
		case isLinkNotFound(err):
			continue
		case err != nil:
			return err
		case link.Attrs().Alias != mark(n.UID):
			return fmt.Errorf("device %s: %w", device, errs.ErrNotManaged)
		}
		ours = true
	}
	exists, err := namespaceExists(n.Namespace)
	if err == nil && exists && !ours {
		err = fmt.Errorf("namespace %s: %w", n.Namespace, errs.ErrNotManaged)
	}
	return err
}

// DeviceIndex gives the index of a network device of the host; 0 when there is none of
// that name. A device that was made anew has another one.
func (s *Stack) DeviceIndex(name string) (int, error) {
	link, err := netlink.LinkByName(name)
	if isLinkNotFound(err) {
		return 0, nil
	}
	if err != nil {
		return 0, refusal("device "+name, "look up", err)
	}
	return link.Attrs().Index, nil
}

// freeSlot chooses among the slots that neither another network nor the host itself uses.
func (s *Stack) freeSlot(uid string) (int, error) {
	others, err := s.states()
	if err != nil {
		return 0, err
	}
	var taken []netip.Prefix
	for _, other := range others {
		if other.Slot >= 0 && other.Network.UID != uid {
			taken = append(taken, uplinkSubnet(other.Slot))
		}
	}
	addresses, err := netlink.AddrList(nil, netlink.FAMILY_V4)
	if err != nil {
		return 0, err
	}
	for _, a := range addresses {
		// A whole 169.254.0.0/16 on a device (avahi) leaves room for longer prefixes.
		if p, ok := prefixOf(a); ok && p.Addr().IsLinkLocalUnicast() {
			taken = append(taken, netip.PrefixFrom(p.Addr(), max(p.Bits(), 24)).Masked())
		}
	}
	return chooseSlot(uid, taken)
}

func (s *Stack) ensureNamespace(ctx context.Context, st state) error {
	n := st.Network
	if err := addNamespace(ctx, n.Namespace); err != nil {
		return err
	}
	links, err := openLinks(n.Namespace)
	if err != nil {
		return err
	}
	defer links.close()
	if err := links.up("lo"); err != nil {
		return err
	}
	// Forwarding is on in every network: without a way out, a guest then hears at once that
	// there is none, and several subnets of one network meet here.
	return inside(n.Namespace, func() error {
		return errors.Join(
			setSysctl("net/ipv4/ip_forward", "1"),
			ifPresent(setSysctl("net/ipv6/conf/all/forwarding", "1")),
			ifPresent(setSysctl("net/ipv6/conf/default/accept_ra", "0")),
			setSysctl("net/ipv4/conf/all/rp_filter", "1"),
		)
	})
}

// ifPresent overlooks a setting that this kernel does not have.
func ifPresent(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

func (s *Stack) ensureGateway(ctx context.Context, st state) error {
	n := st.Network
	links, err := openLinks(n.Namespace)
	if err != nil {
		return err
	}
	defer links.close()
	pair := veth{outer: GatewayDevice(n.UID), inner: gatewayLink, innerMAC: deviceMAC(n.UID, gatewayLink), mtu: n.MTU}
	if err := links.ensureVeth(pair, mark(n.UID), true); err != nil {
		return err
	}
	if n.Userspace {
		if err := inside(n.Namespace, func() error { return transmitChecksumsOff(gatewayLink) }); err != nil {
			return err
		}
		if err := s.Guard(ctx, pair.outer); err != nil {
			return err
		}
	}
	return setAddresses(links.Handle, gatewayLink, n.Gateways)
}

// ensureUplink joins a NAT network's namespace to the host, or parts the two.
func (s *Stack) ensureUplink(_ context.Context, st state) error {
	n := st.Network
	if st.Slot < 0 {
		return deleteVeth(UplinkDevice(n.UID))
	}
	links, err := openLinks(n.Namespace)
	if err != nil {
		return err
	}
	defer links.close()
	pair := veth{outer: UplinkDevice(n.UID), inner: uplinkLink, innerMAC: deviceMAC(n.UID, uplinkLink), mtu: n.MTU}
	if err := links.ensureVeth(pair, mark(n.UID), true); err != nil {
		return err
	}
	host, inner := uplinkAddresses(st.Slot)
	own, err := netlink.NewHandle()
	if err != nil {
		return err
	}
	defer own.Close()
	if err := setAddresses(own, pair.outer, []netip.Prefix{host}); err != nil {
		return err
	}
	if err := setAddresses(links.Handle, uplinkLink, []netip.Prefix{inner}); err != nil {
		return err
	}
	link, err := links.LinkByName(uplinkLink)
	if err != nil {
		return err
	}
	return links.RouteReplace(&netlink.Route{LinkIndex: link.Attrs().Index, Gw: host.Addr().AsSlice()})
}

func (s *Stack) ensureFirewall(ctx context.Context, st state) error {
	rules := namespaceRules(st.Slot >= 0, onThisHost(forwarders(st.Network)))
	return inside(st.Network.Namespace, func() error { return nft(ctx, rules) })
}

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

// Remove takes a network's part of this host down; none is success. What is on the
// bridge's side (the gateway's port) goes with its device.
func (s *Stack) Remove(ctx context.Context, uid string) error {
	st, err := s.load(uid)
	if err != nil {
		return refusal("network "+uid, "read its state", err)
	}
	if st == nil {
		return nil
	}
	n := st.Network
	// Each part stands alone: one that fails leaves the state, for the next try.
	err = errors.Join(
		s.stopDNS(ctx, n),
		deleteVeth(UplinkDevice(uid)),
		deleteVeth(GatewayDevice(uid)),
		s.Unguard(ctx, GatewayDevice(uid)),
		deleteNamespace(ctx, n.Namespace),
	)
	if err == nil {
		err = os.RemoveAll(s.dir(uid))
	}
	if err == nil {
		err = s.ensureHost(ctx, state{})
	}
	if err == nil {
		err = s.dropGuards(ctx)
	}
	return refusal(n.ref(), "take it down on this host", err)
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
	return nft(ctx, deleteTable("netdev"))
}

// Networks lists the networks that stand on this host, by their state.
func (s *Stack) Networks() ([]Network, error) {
	all, err := s.states()
	if err != nil {
		return nil, refusal("networks", "read their state", err)
	}
	var found []Network
	for _, st := range all {
		found = append(found, st.Network)
	}
	return found, nil
}

// refusal classifies an error of this package, once: what is not ours is permanent,
// a program that is missing is the operator's, the rest is tried again.
func refusal(object, action string, err error) error {
	var classified *errs.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &classified):
		return err
	case errors.Is(err, errs.ErrNotManaged):
		return errs.NewPermanent(object, action, err, "remove or rename what stands in its place")
	case errors.Is(err, errs.ErrInvalid):
		return errs.NewPermanent(object, action, err, "")
	case isMissingProgram(err):
		return errs.NewOperator(object, action, err, "install the package on this host")
	case errors.Is(err, os.ErrPermission):
		return errs.NewOperator(object, action, err, "run the host worker as root")
	default:
		return errs.NewTransient(object, action, err)
	}
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
