package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"burrow.dev/burrow/internal/accel"
	"burrow.dev/burrow/internal/hostnet"
)

// socketTimeout bounds the question whether a daemon on this machine accepts connections.
const socketTimeout = 2 * time.Second

const (
	// lowSpace is where a host's disk becomes a warning: one image and a few linked
	// volumes fit in it.
	lowSpace = 5 << 30
	// noSpace is where it becomes a failure: Temporal and etcd need room to write.
	noSpace = 1 << 30
)

// checkSocket looks whether a daemon listens on one of its sockets.
func checkSocket(ctx context.Context, name, next string, paths ...string) check {
	d := net.Dialer{Timeout: socketTimeout}
	for _, path := range paths {
		conn, err := d.DialContext(ctx, "unix", path)
		if err == nil {
			_ = conn.Close()
			return check{Name: name, Level: checkOK, Detail: path}
		}
		if errors.Is(err, fs.ErrPermission) {
			return check{Name: name, Level: checkOK, Detail: path + " is there; only root may ask it more"}
		}
	}
	return check{Name: name, Level: checkFail, Detail: "nobody listens on " + strings.Join(paths, " or "), Next: next}
}

// checkKVM looks whether QEMU's user may open /dev/kvm; whether KVM works, the worker
// found out by booting.
func checkKVM() check {
	return judged("/dev/kvm", checkFail, accel.CheckPermissions(), "absent, or open to QEMU")
}

// checkForwarding looks whether this host passes packets on, and whether it has to.
func checkForwarding() check {
	value, err := os.ReadFile("/proc/sys/net/ipv4/ip_forward")
	if err != nil {
		return check{Name: forwardingName, Level: checkWarn, Detail: err.Error()}
	}
	uplinks, err := filepath.Glob("/sys/class/net/bwu*")
	return forwardingVerdict(strings.TrimSpace(string(value)) == "1", err == nil && len(uplinks) > 0)
}

const forwardingName = "ip_forward"

// forwardingVerdict: the worker switches forwarding on with the first NAT network, so off
// is a fault only after that.
func forwardingVerdict(on, networks bool) check {
	k := check{Name: forwardingName, Level: checkOK, Detail: "on"}
	switch {
	case on:
	case networks:
		k.Level, k.Detail = checkWarn, "off: servers on NAT networks reach nobody outside"
		k.Next = "something switched it off: sysctl -w net.ipv4.ip_forward=1, and look in /etc/sysctl.d"
	default:
		k.Detail = "off; burrow switches it on with the first NAT network"
	}
	return k
}

// checkFirewalls looks for firewalls of others that drop what servers send outside.
func checkFirewalls(ctx context.Context) check {
	if os.Geteuid() != 0 {
		return check{Name: firewallsName, Level: checkOK, Detail: "not looked at: that takes root"}
	}
	return firewallsVerdict(hostnet.ForwardBlockers(ctx))
}

const firewallsName = "other firewalls"

func firewallsVerdict(blockers []string, err error) check {
	switch {
	case err != nil:
		return judged(firewallsName, checkWarn, err, "")
	case len(blockers) == 0:
		return check{Name: firewallsName, Level: checkOK, Detail: "none drops what passes through this host"}
	}
	k := check{
		Name: firewallsName, Level: checkWarn,
		Detail: "nft chain " + strings.Join(blockers, ", ") + " drops what nobody accepts: servers on NAT networks reach nobody outside",
		Next:   "let interfaces bwu* through in it, both ways",
	}
	if slices.Contains(blockers, "ip filter FORWARD") { // Docker's, or any iptables script's
		k.Next += ": iptables -I FORWARD -i 'bwu+' -j ACCEPT && iptables -I FORWARD -o 'bwu+' -j ACCEPT (with Docker: DOCKER-USER instead of FORWARD)"
	}
	return k
}

// program is a command that a host worker runs, with the package it comes from.
type program struct{ name, pkg string }

func hostPrograms() []program {
	return []program{
		{"qemu-system-x86_64", "qemu-system-x86"},
		{"qemu-img", "qemu-utils"},
		{"ovs-vsctl", "openvswitch-switch"},
		{"dnsmasq", "dnsmasq-base"},
		{"nft", "nftables"},
		{"ip", "iproute2"},
		{"ansible-playbook", "ansible-core"},
		{"ssh", "openssh-client"},
	}
}

func checkPrograms() []check {
	var checks []check
	for _, p := range hostPrograms() {
		path, err := findProgram(p.name)
		if err != nil {
			checks = append(checks, check{Name: p.name, Level: checkFail, Detail: "not installed", Next: "apt-get install " + p.pkg})
			continue
		}
		checks = append(checks, check{Name: p.name, Level: checkOK, Detail: path})
	}
	return checks
}

// findProgram looks in PATH and where daemons are, which is not in every user's PATH.
func findProgram(name string) (string, error) {
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	for _, dir := range []string{"/usr/sbin", "/sbin", "/usr/local/sbin"} {
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return path, nil
		}
	}
	return "", exec.ErrNotFound
}

// checkSpace looks at the file system that a folder is on, or will be.
func checkSpace(dir string) check {
	name := "space in " + dir
	at := dir
	for {
		var st syscall.Statfs_t
		err := syscall.Statfs(at, &st)
		if err == nil {
			return spaceVerdict(name, st.Bavail*uint64(st.Bsize))
		}
		if !errors.Is(err, fs.ErrNotExist) || at == filepath.Dir(at) {
			return check{Name: name, Level: checkWarn, Detail: err.Error()}
		}
		at = filepath.Dir(at)
	}
}

func spaceVerdict(name string, free uint64) check {
	k := check{Name: name, Level: checkOK, Detail: fmt.Sprintf("%.1f GiB free", float64(free)/(1<<30))}
	switch {
	case free < noSpace:
		k.Level, k.Next = checkFail, "free some: burrow image list shows images that may go"
	case free < lowSpace:
		k.Level, k.Next = checkWarn, "free some before building servers"
	}
	return k
}

func atoiOr(text string, otherwise int) int {
	if n, err := strconv.Atoi(text); err == nil {
		return n
	}
	return otherwise
}
