package lab

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// private are the folders of which every host has its own, empty, beside /run. The image
// cache (/var/cache/burrow) is not among them: images are shared by all hosts.
var private = []string{
	"/etc/openvswitch", "/var/lib/openvswitch", "/var/log/openvswitch",
	"/var/lib/libvirt", "/var/log/libvirt", "/var/cache/libvirt", "/var/lib/burrow", "/etc/burrow",
}

// filled are the folders of which every host has its own copy: what is configured in it,
// and the accounts that `burrow up` makes, stay its own.
var filled = []string{"/etc"}

// mounts gives the host its own view of /proc, /sys and of all state below [private]
// and [filled].
func (t task) mounts() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	resolv, err := filepath.EvalSymlinks("/etc/resolv.conf")
	if err != nil {
		resolv = "/etc/resolv.conf"
	}
	if t.Resolv == "" {
		text, _ := os.ReadFile(resolv)
		t.Resolv = string(text)
	}
	steps := []func() error{kernelFilesystems, privateRun, filledFolders, privateFolders, privateKVM}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	hosts := "127.0.0.1 localhost " + t.Host.Name + "\n::1 localhost ip6-localhost\n"
	if err := replaceFile("/etc/hosts", hosts); err != nil {
		return err
	}
	return replaceFile(resolv, t.Resolv)
}

// kernelFilesystems mounts /proc for the pid namespace and /sys for the network
// namespace (its class/net shows the mounter's devices), and keeps the cgroups.
func kernelFilesystems() error {
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	const cgroups = "/sys/fs/cgroup"
	// A detached copy of the tree is mounted again below the new /sys.
	tree, err := unix.OpenTree(unix.AT_FDCWD, cgroups, unix.OPEN_TREE_CLONE|unix.AT_RECURSIVE|unix.OPEN_TREE_CLOEXEC)
	if err == nil {
		defer unix.Close(tree)
	}
	if mountErr := unix.Mount("sysfs", "/sys", "sysfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); mountErr != nil {
		return fmt.Errorf("mount /sys: %w", mountErr)
	}
	if err != nil {
		return nil // no cgroups on this machine
	}
	if err := unix.MoveMount(tree, "", unix.AT_FDCWD, cgroups, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return fmt.Errorf("mount %s: %w", cgroups, err)
	}
	return nil
}

// privateRun comes first: the copies of the filled folders are in it.
func privateRun() error {
	if err := privateFolder("/run"); err != nil {
		return err
	}
	for _, dir := range []string{"/run/lock", "/run/netns"} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	return nil
}

func privateFolders() error {
	for _, dir := range private {
		if err := privateFolder(dir); err != nil {
			return err
		}
	}
	return nil
}

func privateFolder(dir string) error {
	// A mount needs a place: an empty folder stays on a machine that had none.
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, tmpfsOptions); err != nil {
		return fmt.Errorf("mount %s: %w", dir, err)
	}
	return nil
}

// filledFolders copies by way of /run, since the tmpfs hides what it is mounted over.
func filledFolders() error {
	for _, dir := range filled {
		if _, err := os.Stat(dir); err != nil {
			continue
		}
		copied := filepath.Join("/run", "lab", dir)
		if err := os.MkdirAll(filepath.Dir(copied), 0o755); err != nil {
			return err
		}
		if err := output("cp", "-a", dir, copied); err != nil {
			return err
		}
		for _, own := range machinesOwn {
			folder := filepath.Join("/run/lab", own)
			if _, err := os.Stat(folder); err != nil {
				continue
			}
			if err := output("find", folder, "-mindepth", "1", "-delete"); err != nil {
				return err
			}
		}
		if err := unix.Mount(copied, dir, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("mount %s: %w", dir, err)
		}
	}
	return nil
}

// machinesOwn are the parts of a copied folder that hold the machine's own domains,
// networks, pools and secrets: a lab's libvirtd must not know, and start, them.
var machinesOwn = []string{"/etc/libvirt/qemu", "/etc/libvirt/storage", "/etc/libvirt/secrets", "/etc/libvirt/hooks"}

// replaceFile puts a file with the given text over path, in this mount namespace only.
func replaceFile(path, text string) error {
	if _, err := os.Stat(path); err != nil {
		// Below the new /run, or absent: then there is nothing to hide.
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		return os.WriteFile(path, []byte(text), 0o644)
	}
	own := filepath.Join("/run", "lab", path)
	if err := os.MkdirAll(filepath.Dir(own), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(own, []byte(text), 0o644); err != nil {
		return err
	}
	if err := unix.Mount(own, path, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("mount %s: %w", path, err)
	}
	return nil
}

// tmpfsOptions give each folder more room than there is memory: pools of sparse volumes
// are measured by it, and only what guests really write takes any.
const tmpfsOptions = "mode=755,size=64g"
