package accel

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"os/user"
	"strconv"

	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/qemuuser"
)

// kvmGroup is the group that distributions give /dev/kvm to.
const kvmGroup = "kvm"

// kvmMode is the node's mode with that group.
const kvmMode = 0o660

// mend is what a person types.
const mend = "chgrp kvm /dev/kvm && chmod 660 /dev/kvm"

// CheckPermissions finds out whether QEMU's user may open /dev/kvm. nil: it may, or there
// is no such node. Otherwise an Operator error with the mend: libvirt would ask QEMU for
// its capabilities again at each define and start, a minute and a half each.
func CheckPermissions() error { return checkPermissions(device) }

func checkPermissions(node string) error {
	info, err := os.Stat(node)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return errs.NewOperator(node, "look at", err, mend)
	}
	u, err := qemuuser.Lookup()
	if err != nil {
		return err
	}
	if u.May(info, qemuuser.Read|qemuuser.Write) {
		return nil
	}
	return errs.NewOperator(node, "check permissions",
		errs.Reason("QEMU's user %s may not open it, so that libvirt needs over a minute for each server", u.Name), mend)
}

// FixPermissions gives /dev/kvm to group kvm with mode 0660, as distributions' udev rules
// do, where QEMU's user could not open it. It needs root, changes nothing when all is
// well or when the group does not exist, and says in the log what it did.
func FixPermissions(log *slog.Logger) error { return fixPermissions(device, log) }

func fixPermissions(node string, log *slog.Logger) error {
	problem := checkPermissions(node)
	if problem == nil {
		return nil
	}
	group, err := user.LookupGroup(kvmGroup)
	if err != nil {
		return problem
	}
	gid, err := strconv.Atoi(group.Gid)
	if err != nil {
		return problem
	}
	if err := errors.Join(os.Chown(node, -1, gid), os.Chmod(node, kvmMode)); err != nil {
		return errs.NewOperator(node, "give to group "+kvmGroup, err, mend)
	}
	log.Info("gave /dev/kvm to group kvm, mode 0660, so that QEMU's user may open it")
	return checkPermissions(node)
}
