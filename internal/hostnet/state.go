package hostnet

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"

	"burrow.dev/burrow/internal/errs"
)

// Network is what a host needs to know of a network.
type Network struct {
	UID       string `json:"uid"`
	Name      string `json:"name"` // for messages
	Namespace string `json:"namespace"`
	// Gateways are the addresses the namespace has, each with its subnet's length.
	Gateways []netip.Prefix `json:"gateways,omitempty"`
	// NAT lets guests out through the host.
	NAT bool `json:"nat"`
	MTU int  `json:"mtu"`
	// Userspace tells that the bridge runs on the userspace datapath.
	Userspace bool `json:"userspace"`
	// Domain is the DNS domain of the network's servers.
	Domain string `json:"domain"`
	// Forwarders answer for everything else; empty: the host's own resolvers.
	Forwarders []netip.Addr `json:"forwarders,omitempty"`
	// DHCP hands out exactly the addresses of [Stack.SetNames].
	DHCP bool `json:"dhcp,omitempty"`
}

// domainName matches DNS domains: labels as in RFC 1123.
var domainName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$`)

// check refuses what would not be one word of a configuration file or a file name.
func (n Network) check() error {
	switch {
	case !fileName.MatchString(n.Namespace):
		return fmt.Errorf("namespace %q: %w", n.Namespace, errs.ErrInvalid)
	case !fileName.MatchString(n.Name):
		return fmt.Errorf("name %q: %w", n.Name, errs.ErrInvalid)
	case n.Domain != "" && !domainName.MatchString(n.Domain):
		return fmt.Errorf("domain %q: %w", n.Domain, errs.ErrInvalid)
	}
	return checkUID(n.UID)
}

// ref names the network as users do.
func (n Network) ref() string { return "network/" + n.Name }

// state is what is kept of a network while it stands on this host.
type state struct {
	Network Network `json:"network"`
	// Slot numbers the uplink's /30; -1 without NAT.
	Slot int `json:"slot"`
}

// mark is the alias of every device made for a network.
func mark(uid string) string { return "burrow network " + uid }

// GatewayDevice names the host's end of the veth pair to a network's gateway: the device
// that goes on the network's bridge. 13 characters.
func GatewayDevice(uid string) string { return "bwg" + digest(uid) }

// UplinkDevice names the host's end of the veth pair through which a NAT network leaves.
func UplinkDevice(uid string) string { return "bwu" + digest(uid) }

func digest(uid string) string {
	sum := sha256.Sum256([]byte(uid))
	return hex.EncodeToString(sum[:5])
}

// deviceMAC is the address of a device inside a network's namespace, the same whenever it
// is made: guests remember their gateway's.
func deviceMAC(uid, device string) net.HardwareAddr {
	sum := sha256.Sum256([]byte(uid + "/" + device))
	return net.HardwareAddr{0x02, sum[0], sum[1], sum[2], sum[3], sum[4]} // locally administered
}

// fileName matches uids: they become file names.
var fileName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9-]{0,127}$`)

func checkUID(uid string) error {
	if !fileName.MatchString(uid) {
		return fmt.Errorf("uid %q: %w", uid, errs.ErrInvalid)
	}
	return nil
}

const stateFile = "network.json"

func (s *Stack) dir(uid string) string { return filepath.Join(s.runDir, uid) }

// load reads a network's state; nil when this host has none.
func (s *Stack) load(uid string) (*state, error) {
	if err := checkUID(uid); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(filepath.Join(s.dir(uid), stateFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var st state
	if err := json.Unmarshal(text, &st); err != nil {
		return nil, fmt.Errorf("read state of network %s: %w", uid, err)
	}
	return &st, nil
}

// save writes a network's state, whole.
func (s *Stack) save(st state) error {
	dir := s.dir(st.Network.UID)
	for _, d := range []string{dir, filepath.Join(dir, hostsDir), filepath.Join(dir, leasesDir)} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return err
		}
	}
	text, err := json.MarshalIndent(st, "", "  ")
	if err != nil {
		return err
	}
	_, err = replaceFile(filepath.Join(dir, stateFile), append(text, '\n'))
	return err
}

// states reads the state of every network on this host.
func (s *Stack) states() ([]state, error) {
	entries, err := os.ReadDir(s.runDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []state
	for _, e := range entries {
		if !e.IsDir() || checkUID(e.Name()) != nil {
			continue
		}
		st, err := s.load(e.Name())
		if err != nil {
			return nil, err
		}
		if st != nil {
			all = append(all, *st)
		}
	}
	return all, nil
}

// replaceFile writes a file whole (its readers see the old or the new one) and tells
// whether that changed anything.
func replaceFile(path string, text []byte) (changed bool, err error) {
	old, err := os.ReadFile(path)
	if err == nil && string(old) == string(text) {
		return false, nil
	}
	// dnsmasq overlooks names that begin with a dot.
	part := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".part")
	if err := os.WriteFile(part, text, 0o644); err != nil {
		return false, err
	}
	return true, os.Rename(part, path)
}
