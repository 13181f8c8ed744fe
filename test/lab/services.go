package lab

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"
)

// startTimeout bounds the wait for a daemon that has gone to the background: libvirtd
// asks QEMU for its capabilities first, seconds on a slow machine.
const startTimeout = 60 * time.Second

// start starts a service and returns when it answers.
func start(need Need) error {
	switch need {
	case OVS:
		return startOVS()
	case Libvirt:
		return startLibvirt()
	case Internet:
		return nil // the supervisor's
	default:
		return fmt.Errorf("unknown need %q", need)
	}
}

func startOVS() error {
	return output("/usr/share/openvswitch/scripts/ovs-ctl", "--system-id=random", "--no-mlockall", "start")
}

// libvirtdConf and qemuConf replace the machine's: a host trusts root on its socket, and
// shares neither cgroups nor security labels with its neighbours on the machine.
const (
	libvirtdConf = "auth_unix_rw = \"none\"\nauth_unix_ro = \"none\"\nlog_outputs = \"2:file:/var/log/libvirt/libvirtd.log\"\n"
	qemuConf     = "security_driver = \"none\"\ncgroup_controllers = [ ]\n"
)

func startLibvirt() error {
	const etc = "/etc/libvirt"
	for name, text := range map[string]string{"libvirtd.conf": libvirtdConf, "qemu.conf": qemuConf} {
		if err := os.WriteFile(filepath.Join(etc, name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	for _, made := range []string{"qemu/networks", "qemu/autostart", "storage"} {
		if err := os.RemoveAll(filepath.Join(etc, made)); err != nil {
			return err
		}
	}
	for _, dir := range []string{"/var/lib/libvirt/images", "/var/lib/libvirt/qemu", "/var/log/libvirt/qemu"} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	for _, daemon := range []string{"virtlogd", "libvirtd"} {
		if err := output(daemon, "-d"); err != nil {
			return err
		}
		if err := awaitSocket("/run/libvirt/" + sockets[daemon]); err != nil {
			return err
		}
	}
	return nil
}

var sockets = map[string]string{"virtlogd": "virtlogd-sock", "libvirtd": "libvirt-sock"}

// awaitSocket returns when somebody accepts on the unix socket.
func awaitSocket(path string) error {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		conn, err := net.Dial("unix", path)
		if err == nil {
			return conn.Close()
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("nobody answers at %s: %w", path, err)
		}
	}
}
