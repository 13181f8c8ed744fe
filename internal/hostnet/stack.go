package hostnet

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
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
func New(runDir string, log *slog.Logger) *Stack {
	return &Stack{runDir: runDir, log: log, tables: map[string]bool{}}
}

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

// ForeignDevice reports whether the host has a network device of a name that cannot be an
// Open vSwitch bridge's: those are taps on the userspace datapath, internal ports on the
// kernel's, and stay for a while when ovs-vswitchd dies.
func (s *Stack) ForeignDevice(name string) (bool, error) {
	link, err := netlink.LinkByName(name)
	if isLinkNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, refusal("device "+name, "look up", err)
	}
	return link.Type() != "tuntap" && link.Type() != "openvswitch", nil
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
