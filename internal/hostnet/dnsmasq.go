package hostnet

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Names in a network's state folder.
const (
	hostsDir  = "hosts"  // one file a server: its names, read by dnsmasq as it appears
	leasesDir = "leases" // one file a server: its MAC and addresses
	confFile  = "dnsmasq.conf"
	pidFile   = "dnsmasq.pid"
	logFile   = "dnsmasq.log"
)

// dnsmasqConf is the whole configuration of a network's dnsmasq.
func dnsmasqConf(n Network, dir, login string, forwarders []netip.Addr) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("# made by burrow for %s; changes are lost", n.ref())
	line("user=%s", login)
	line("pid-file=%s", filepath.Join(dir, pidFile))
	line("log-facility=%s", filepath.Join(dir, logFile))
	line("interface=%s", gatewayLink)
	line("except-interface=lo")
	line("bind-interfaces")
	line("no-hosts\nno-resolv\nno-poll")
	line("domain-needed\nbogus-priv")
	line("domain=%s", n.Domain)
	line("local=/%s/", n.Domain)
	line("hostsdir=%s", filepath.Join(dir, hostsDir))
	for _, f := range forwarders {
		line("server=%s", f)
	}
	if n.DHCP {
		line("quiet-dhcp\nquiet-dhcp6")
		line("leasefile-ro")
		line("dhcp-hostsdir=%s", filepath.Join(dir, leasesDir))
		line("dhcp-option=option:mtu,%d", n.MTU)
		for _, g := range n.Gateways {
			line("dhcp-range=%s", staticRange(g))
			if g.Addr().Is6() {
				line("enable-ra") // which tells guests to ask for their address
			}
		}
	}
	return b.String()
}

// staticRange offers a subnet's addresses to those alone whose lease is written down.
func staticRange(gateway netip.Prefix) string {
	network := gateway.Masked().Addr()
	if network.Is6() {
		return fmt.Sprintf("%s,static,%d,infinite", network, gateway.Bits())
	}
	mask := [4]byte{}
	for i := range gateway.Bits() {
		mask[i/8] |= 1 << (7 - i%8)
	}
	return fmt.Sprintf("%s,static,%s,infinite", network, netip.AddrFrom4(mask))
}

// dnsLogin is whom dnsmasq becomes: its own user where its package made one.
func dnsLogin() string {
	if _, err := user.Lookup("dnsmasq"); err == nil {
		return "dnsmasq"
	}
	return "nobody"
}

// ensureDNS has one dnsmasq run in the namespace with the configuration as it should be:
// one that an earlier worker started is kept when nothing differs.
func (s *Stack) ensureDNS(ctx context.Context, st state) error {
	n := st.Network
	if len(n.Gateways) == 0 || n.Domain == "" {
		return s.stopDNS(ctx, n)
	}
	dir := s.dir(n.UID)
	conf := filepath.Join(dir, confFile)
	changed, err := replaceFile(conf, []byte(dnsmasqConf(n, dir, dnsLogin(), forwarders(n))))
	if err != nil {
		return err
	}
	running := findDNS(dir)
	if len(running) == 1 && !changed && inNamespace(running[0], n.Namespace) {
		return nil
	}
	if err := s.stopDNS(ctx, n); err != nil {
		return err
	}
	// It goes to the background once it is bound, so its success is its being there.
	return inside(n.Namespace, func() error { return run(ctx, "", "dnsmasq", confFlag(dir)) })
}

func confFlag(dir string) string { return "--conf-file=" + filepath.Join(dir, confFile) }

// stopDNS ends every dnsmasq of the network; none is success.
func (s *Stack) stopDNS(ctx context.Context, n Network) error {
	var failed []error
	for _, pid := range findDNS(s.dir(n.UID)) {
		failed = append(failed, endProcess(ctx, pid, confFlag(s.dir(n.UID))))
	}
	return errors.Join(failed...)
}

// reloadDNS makes dnsmasq forget names that are gone; it sees new ones by itself.
func (s *Stack) reloadDNS(uid string) error {
	for _, pid := range findDNS(s.dir(uid)) {
		if err := signalProcess(pid, confFlag(s.dir(uid)), unix.SIGHUP); err != nil {
			return err
		}
	}
	return nil
}

// findDNS gives the dnsmasq processes of a network. The configuration file on its command
// line identifies it, whoever started it and however its pid file was lost.
func findDNS(dir string) []int {
	flag := confFlag(dir)
	if text, err := os.ReadFile(filepath.Join(dir, pidFile)); err == nil {
		if pid, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil && hasArgument(pid, flag) {
			return []int{pid}
		}
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var found []int
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil && hasArgument(pid, flag) {
			found = append(found, pid)
		}
	}
	return found
}
