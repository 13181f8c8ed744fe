package hostnet

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"burrow.dev/burrow/internal/errs"
)

// Name is what DNS (and DHCP) say of one NIC.
type Name struct {
	// Host is one label; it resolves as itself and below the network's domain.
	Host string
	// MAC gets the addresses as its lease, on a network with DHCP.
	MAC       string
	Addresses []netip.Addr
}

var (
	hostLabel = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)
	macText   = regexp.MustCompile(`^([0-9a-f]{2}:){5}[0-9a-f]{2}$`)
)

// SetNames makes names what the network's DNS says of an owner (a server's uid), in the
// place of what it said before. The network must stand on this host.
func (s *Stack) SetNames(ctx context.Context, uid, owner string, names []Name) error {
	object, action := "network "+uid, "set the names of "+owner
	st, err := s.load(uid)
	if err == nil && st == nil {
		err = fmt.Errorf("%w on this host", errs.ErrNotFound)
	}
	if err == nil {
		object, err = st.Network.ref(), checkUID(owner)
	}
	var hosts, leases string
	if err == nil {
		hosts, leases, err = nameFiles(names, st.Network)
	}
	if err != nil {
		return refusal(object, action, err)
	}
	changed := false
	for dir, text := range map[string]string{hostsDir: hosts, leasesDir: leases} {
		wrote, err := replaceFile(filepath.Join(s.dir(uid), dir, owner), []byte(text))
		if err != nil {
			return refusal(object, action, err)
		}
		changed = changed || wrote
	}
	if !changed {
		return nil
	}
	return refusal(object, action, s.reloadDNS(uid))
}

// DropNames makes the network's DNS forget an owner; none is success.
func (s *Stack) DropNames(ctx context.Context, uid, owner string) error {
	action := "drop the names of " + owner
	if err := errors.Join(checkUID(uid), checkUID(owner)); err != nil {
		return refusal("network "+uid, action, err)
	}
	changed := false
	for _, dir := range []string{hostsDir, leasesDir} {
		err := os.Remove(filepath.Join(s.dir(uid), dir, owner))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return refusal("network "+uid, action, err)
		}
		changed = changed || err == nil
	}
	if !changed {
		return nil
	}
	return refusal("network "+uid, action, s.reloadDNS(uid))
}

// nameFiles writes the lines of hosts(5) and of dnsmasq's dhcp-host. Whatever could end a
// line or begin another option is refused.
func nameFiles(names []Name, n Network) (hosts, leases string, err error) {
	var h, l strings.Builder
	for _, name := range names {
		if !hostLabel.MatchString(name.Host) || !macText.MatchString(name.MAC) {
			return "", "", fmt.Errorf("name %q with MAC %q: %w", name.Host, name.MAC, errs.ErrInvalid)
		}
		if len(name.Addresses) == 0 {
			continue
		}
		lease := []string{name.MAC}
		for _, a := range name.Addresses {
			fmt.Fprintf(&h, "%s %s.%s %s\n", a, name.Host, n.Domain, name.Host)
			if a.Is6() {
				lease = append(lease, "["+a.String()+"]")
			} else {
				lease = append(lease, a.String())
			}
		}
		fmt.Fprintf(&l, "%s,infinite\n", strings.Join(append(lease, name.Host), ","))
	}
	return h.String(), l.String(), nil
}
