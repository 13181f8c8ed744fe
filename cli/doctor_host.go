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
	"strconv"
	"strings"
	"syscall"
	"time"

	"burrow.dev/burrow/internal/accel"
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

func checkForwarding() check {
	const path = "/proc/sys/net/ipv4/ip_forward"
	value, err := os.ReadFile(path)
	if err != nil {
		return check{Name: "ip_forward", Level: checkWarn, Detail: err.Error()}
	}
	if strings.TrimSpace(string(value)) != "1" {
		return check{
			Name: "ip_forward", Level: checkWarn, Detail: "off: servers on nat and routed networks reach nobody outside",
			Next: "sysctl -w net.ipv4.ip_forward=1, and a file in /etc/sysctl.d to keep it",
		}
	}
	return check{Name: "ip_forward", Level: checkOK, Detail: "on"}
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
