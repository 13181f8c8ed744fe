package domain

import (
	"context"
	"strings"

	"libvirt.org/go/libvirtxml"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
)

// PlugNICs plugs NICs into the server's running domain. Their bridges let nothing through
// before they are wired. One that is there already is success, and so is a domain that is
// off: the next start defines it anew, with all its NICs.
//
// The guest still has an earlier NIC of that name, on another bridge → Operator.
func (a *Activities) PlugNICs(ctx context.Context, in PlugNICsIn) (PlugNICsOut, error) {
	def, err := a.running(ctx, in.Server, "plug in NICs")
	if err != nil || def == nil {
		return PlugNICsOut{Off: err == nil}, err
	}
	userspace, err := a.checkBridges(ctx, StartIn{Server: in.Server, Ports: in.Ports})
	if err != nil {
		return PlugNICsOut{}, err
	}
	for _, p := range in.Ports {
		action := "plug in NIC " + p.Name
		if have := nicAt(def, p.MAC); have != nil {
			if bridgeOf(have) != p.Bridge {
				return PlugNICsOut{}, errs.NewOperator(in.Server.Ref(), action,
					errs.Reason("%w: the guest has not given back the NIC of that name on bridge %s yet", errs.ErrConflict, bridgeOf(have)),
					"apply again with --restart, or restart the server first: burrow restart "+in.Server.Name)
			}
			continue
		}
		if err := a.checkPorts(ctx, StartIn{Server: in.Server, Ports: []manifest.Port{p}}); err != nil {
			return PlugNICsOut{}, err
		}
		device := nic(in.Server, p, userspace[p.Bridge])
		if err := a.cfg.Libvirt.AttachInterface(ctx, manifest.DomainUUID(in.Server.UID), &device); err != nil {
			return PlugNICsOut{}, about(in.Server, action, err)
		}
	}
	return PlugNICsOut{}, nil
}

// UnplugNICs takes NICs off the server's running domain, and waits a while until the guest
// has let them go. None, and a domain that is off, are success; so is a guest that does
// not answer: who unwires its NICs leaves it devices that are connected to nothing.
func (a *Activities) UnplugNICs(ctx context.Context, in PlugNICsIn) (UnplugNICsOut, error) {
	left, err := a.askBack(ctx, in.Server, "unplug NICs", func(def *libvirtxml.Domain) []device {
		var there []device
		for _, p := range in.Ports {
			if have := nicAt(def, p.MAC); have != nil {
				there = append(there, device{p.Name, func() error {
					return a.cfg.Libvirt.DetachInterface(ctx, manifest.DomainUUID(in.Server.UID), have)
				}})
			}
		}
		return there
	})
	return UnplugNICsOut{Left: left.names}, err
}

// InsertSeed puts a seed into the drive of the server's running domain, so that the guest
// finds it at its next boot. A domain that is off gets it with its next start.
func (a *Activities) InsertSeed(ctx context.Context, in InsertSeedIn) (activities.Nothing, error) {
	const action = "insert seed"
	def, err := a.running(ctx, in.Server, action)
	if err != nil || def == nil {
		return activities.Nothing{}, err
	}
	drive := cdrom(in.Seed)
	have := diskAt(def, drive.Target.Dev)
	if have == nil || sourceOf(have) == in.Seed {
		return activities.Nothing{}, nil // without a drive, it comes with the next start
	}
	if err := checkFiles(StartIn{Server: in.Server, Seed: in.Seed}); err != nil {
		return activities.Nothing{}, err
	}
	if err := a.cfg.Libvirt.ChangeMedium(ctx, manifest.DomainUUID(in.Server.UID), &drive); err != nil {
		return activities.Nothing{}, about(in.Server, action, err)
	}
	return activities.Nothing{}, nil
}

func nicAt(def *libvirtxml.Domain, mac string) *libvirtxml.DomainInterface {
	if def.Devices == nil {
		return nil
	}
	for i, n := range def.Devices.Interfaces {
		if n.MAC != nil && strings.EqualFold(n.MAC.Address, mac) {
			return &def.Devices.Interfaces[i]
		}
	}
	return nil
}

func bridgeOf(n *libvirtxml.DomainInterface) string {
	if n.Source == nil || n.Source.Bridge == nil {
		return ""
	}
	return n.Source.Bridge.Bridge
}
