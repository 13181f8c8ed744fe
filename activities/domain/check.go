package domain

import (
	"context"
	"errors"
	"os"

	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/qemuuser"
	"burrow.dev/burrow/manifest"
)

// consoleDirMode: consoles may show secrets; virtlogd, which writes them, is root.
const consoleDirMode = 0o700

// libvirt's states that matter here.
const (
	stateRunning = "running"
	stateBlocked = "blocked"
	statePaused  = "paused"
	stateOff     = "shutoff"
	stateCrashed = "crashed"
	stateAsleep  = "pmsuspended"

	// stateStarting is what libvirt calls paused for the reason reasonStarting: its start has
	// not ended. libvirtd ends its QEMU when it was itself killed during the start.
	stateStarting  = "being started"
	reasonStarting = "starting-up"
)

// active reports whether a domain has a QEMU process that serves it.
func active(state string) bool {
	switch state {
	case stateRunning, stateBlocked, statePaused, stateAsleep:
		return true
	}
	return false
}

// checkShape refuses what no libvirt could run.
func checkShape(in StartIn) error {
	bad := func(format string, args ...any) error {
		return errs.NewPermanent(in.Server.Ref(), "describe domain", errors.Join(errs.ErrInvalid, errs.Reason(format, args...)), "mend the server's spec and apply it again")
	}
	switch {
	case in.Server.UID == "" || in.Server.Name == "":
		return bad("the server has no name or no uid")
	case in.CPU <= 0 || in.Memory <= 0:
		return bad("%d CPUs and %d MiB make no server", in.CPU, in.Memory)
	case in.Firmware != "" && in.Firmware != "bios":
		return bad("firmware %s is not supported yet", in.Firmware)
	case len(in.Disks) == 0:
		return bad("it has no boot disk")
	}
	return nil
}

// checkFiles makes sure that every file of the domain is there and that QEMU's user can
// come to it, before libvirt says "Permission denied" of something (pitfall 5).
func checkFiles(in StartIn) error {
	u, err := qemuuser.Lookup()
	if err != nil {
		return err
	}
	check := func(what, path string) error {
		if _, err := os.Stat(path); err != nil {
			return errs.NewPermanent(in.Server.Ref(), "attach "+what, errors.Join(errs.ErrNotFound, err), "bring the file back, or delete the server and apply it again")
		}
		if err := u.CheckReach(path); err != nil {
			return errs.New(errs.ClassOf(err), in.Server.Ref(), "attach "+what, err, "")
		}
		return nil
	}
	for _, d := range in.Disks {
		if err := check("disk "+d.Name, d.Path); err != nil {
			return err
		}
		for _, b := range d.Backing {
			if err := check("image below disk "+d.Name, b.Path); err != nil {
				return err
			}
		}
	}
	if in.Seed == "" {
		return nil
	}
	return check("seed", in.Seed)
}

// checkBridges makes sure that every port's bridge is there, and tells which of them are
// on the userspace datapath. A missing one is transient: Open vSwitch may be starting.
func (a *Activities) checkBridges(ctx context.Context, in StartIn) (userspace map[string]bool, err error) {
	userspace = map[string]bool{}
	for _, p := range in.Ports {
		b, err := a.cfg.Switch.Bridge(ctx, p.Bridge)
		if err != nil {
			return nil, errs.New(errs.ClassOf(err), in.Server.Ref(), "attach NIC "+p.Name+" to bridge "+p.Bridge+" of "+
				manifest.Ref(manifest.KindNetwork, p.Network), err, "")
		}
		userspace[p.Bridge] = b.Userspace()
	}
	return userspace, nil
}

// checkPorts refuses a device's name that somebody else's port has. libvirt would refuse it
// too, but takes the port off its bridge when it cleans up after that.
func (a *Activities) checkPorts(ctx context.Context, in StartIn) error {
	for _, p := range in.Ports {
		port, err := a.cfg.Switch.Port(ctx, p.Device)
		switch {
		case errors.Is(err, errs.ErrNotFound):
			continue
		case err != nil:
			return errs.New(errs.ClassOf(err), in.Server.Ref(), "attach NIC "+p.Name, err, "")
		case !port.OwnedBy(in.Server.UID, p.MAC):
			return errs.NewPermanent(in.Server.Ref(), "attach NIC "+p.Name,
				errs.Reason("%w: a port named %s is on bridge %s already", errs.ErrNotManaged, p.Device, port.Bridge),
				"find out who made it, or remove it: ovs-vsctl del-port "+p.Device)
		}
	}
	return nil
}
