package lab

import (
	"fmt"
	"os"
	"os/user"
	"strconv"

	"golang.org/x/sys/unix"
)

// privateKVM gives QEMU's group the host's /dev/kvm, without a change to the machine's:
// where QEMU's user may not open it, libvirt probes QEMU again at every call.
func privateKVM() error {
	const device = "/dev/kvm"
	var st unix.Stat_t
	group, err := user.LookupGroup("kvm")
	if err != nil || unix.Stat(device, &st) != nil {
		return nil // no KVM, or nobody who would use it
	}
	gid, err := strconv.Atoi(group.Gid)
	if err != nil {
		return err
	}
	if int(st.Gid) == gid && st.Mode&0o060 == 0o060 {
		return nil
	}
	// Not below /run: that tmpfs is mounted nodev.
	const dir = "/dev/.lab"
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	defer os.Remove(dir)
	if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_NOSUID, "mode=755"); err != nil {
		return fmt.Errorf("mount %s: %w", dir, err)
	}
	own := dir + "/kvm"
	if err := unix.Mknod(own, unix.S_IFCHR|0o660, int(st.Rdev)); err != nil {
		return fmt.Errorf("make a node for %s: %w", device, err)
	}
	if err := os.Chown(own, 0, gid); err != nil {
		return err
	}
	if err := os.Chmod(own, 0o660); err != nil {
		return err
	}
	if err := unix.Mount(own, device, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("mount %s: %w", device, err)
	}
	return unix.Unmount(dir, unix.MNT_DETACH)
}
