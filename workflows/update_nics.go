package workflows

import (
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/workflow"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/activities/domain"
	"burrow.dev/burrow/activities/ipam"
	"burrow.dev/burrow/activities/network"
	"burrow.dev/burrow/activities/seed"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
)

// Steps of UpdateServer for NICs.
const (
	stepPlugNICs    = "plug in NICs"
	stepUnplugNICs  = "unplug NICs"
	stepReleaseNICs = "release NICs"
)

func (u *update) changesNICs() bool { return u.change.NICs() }
func (u *update) addsNICs() bool    { return len(u.change.AddNICs) > 0 }
func (u *update) plugsNICs() bool   { return u.changesNICs() && !u.restart }
func (u *update) unplugsNICs() bool { return len(u.change.DropNICs) > 0 && !u.restart && !u.off }

// addresses asks for the addresses of all NICs that are declared: those that stay keep
// theirs, and their names in the guest.
func (u *update) addresses(ctx workflow.Context) error {
	added := nicsNamed(u.in.Spec.NetworkInterface, u.change.AddNICs)
	u.add(stepAddresses, func(ctx workflow.Context) error { return u.release(ctx, added) })
	out, err := call[ipam.AllocateOut](ctx, u.operation, onControl(quickTimeout), activities.IPAMAllocate,
		ipam.AllocateIn{Server: u.server, NICs: u.in.Spec.NetworkInterface})
	if err != nil {
		return err
	}
	u.ports = keepIndexes(u.was.Status.Ports, out.Ports)
	u.detail(ctx, stepAddresses, "%s", strings.Join(addressesOf(u.newPorts()), ", "))
	return nil
}

// keepIndexes leaves the ports that were there their places in the guest, and gives the
// new ones places that nobody had.
func keepIndexes(was, ports []manifest.Port) []manifest.Port {
	taken := map[int]bool{}
	for _, p := range was {
		taken[p.Index] = true
	}
	ports = slices.Clone(ports)
	for i := range ports {
		if old := slices.IndexFunc(was, func(p manifest.Port) bool { return p.Name == ports[i].Name }); old >= 0 {
			ports[i].Index = was[old].Index
			continue
		}
		for ports[i].Index = 0; taken[ports[i].Index]; ports[i].Index++ {
		}
		taken[ports[i].Index] = true
	}
	return ports
}

// newPorts are those that the server gets, gonePorts those that it loses, stayingPorts as
// they were those that it keeps.
func (u *update) newPorts() []manifest.Port { return portsNamed(u.ports, u.change.AddNICs) }

func (u *update) gonePorts() []manifest.Port {
	return portsNamed(u.was.Status.Ports, u.change.DropNICs)
}

func (u *update) stayingPorts() []manifest.Port {
	return slices.DeleteFunc(slices.Clone(u.was.Status.Ports), func(p manifest.Port) bool {
		return slices.Contains(u.change.DropNICs, p.Name)
	})
}

func portsNamed(ports []manifest.Port, names []string) []manifest.Port {
	return slices.DeleteFunc(slices.Clone(ports), func(p manifest.Port) bool { return !slices.Contains(names, p.Name) })
}

func nicsNamed(nics []manifest.NIC, names []string) []manifest.NIC {
	return slices.DeleteFunc(slices.Clone(nics), func(n manifest.NIC) bool { return !slices.Contains(names, n.Name) })
}

// leaving are those of ports on whose networks none of others is.
func leaving(ports, others []manifest.Port) []manifest.Port {
	return slices.DeleteFunc(slices.Clone(ports), func(p manifest.Port) bool {
		return slices.ContainsFunc(others, func(o manifest.Port) bool { return o.NetworkUID == p.NetworkUID })
	})
}

func (u *update) release(ctx workflow.Context, nics []manifest.NIC) error {
	if len(nics) == 0 {
		return nil
	}
	_, err := call[activities.Nothing](ctx, u.operation, onControl(quickTimeout), activities.IPAMRelease,
		ipam.ReleaseIn{Server: u.server, NICs: nics})
	return err
}

// leave drops the server's references to the networks of ports.
func (u *update) leave(ctx workflow.Context, ports []manifest.Port) error {
	if len(ports) == 0 {
		return nil
	}
	_, err := call[activities.Nothing](ctx, u.operation, u.at(), activities.NetworkRelease,
		network.ReleaseIn{Server: u.server, Ports: ports})
	return err
}

// networks makes those of the new NICs stand.
func (u *update) networks(ctx workflow.Context) error {
	ports := u.newPorts()
	u.add(stepNetworks, func(ctx workflow.Context) error { return u.leave(ctx, leaving(ports, u.was.Status.Ports)) })
	u.detail(ctx, stepNetworks, "%s", strings.Join(networkNames(nicsNamed(u.in.Spec.NetworkInterface, u.change.AddNICs)), ", "))
	return u.ensureNetworks(ctx, ports)
}

func (u *update) probeNICs(ctx workflow.Context) error { return u.probePorts(ctx, u.newPorts()) }

// readdress writes the seed that tells the guest of its NICs at its next boot.
func (u *update) readdress(ctx workflow.Context) error {
	u.add(stepSeed, func(ctx workflow.Context) error { return u.prune(ctx, u.was.Status.Seed) })
	u.detail(ctx, stepSeed, "%d NICs", len(u.ports))
	out, err := call[seed.ReaddressOut](ctx, u.operation, u.at(), activities.SeedReaddress, seed.ReaddressIn{
		Server: u.server, Seed: u.was.Status.Seed, Ports: u.ports, CloudInit: u.in.Spec.CloudInit,
	})
	u.seeded.Path = out.Path
	return err
}

// plugNICs gives the running guest its new NICs, and its NICs their new settings. Not a
// packet passes a new one before it is wired.
func (u *update) plugNICs(ctx workflow.Context) error {
	ports := u.newPorts()
	u.add(stepPlugNICs, func(ctx workflow.Context) error { return u.takeBackNICs(ctx, ports) })
	u.detail(ctx, stepPlugNICs, "%s", strings.Join(wiring(u.server.Name, portsNamed(u.ports, slices.Concat(u.change.AddNICs, u.change.TuneNICs))), ", "))
	start := u.startIn()
	start.Disks = u.disksNow()
	if err := u.redefine(ctx, start); err != nil {
		return err
	}
	if err := u.plugAndWire(ctx, ports, u.ports); err != nil {
		return err
	}
	return u.insertSeed(ctx, u.seeded.Path)
}

// redefine makes the domain's definition that of the next start.
func (u *update) redefine(ctx workflow.Context, in domain.StartIn) error {
	_, err := call[activities.Nothing](ctx, u.operation, u.at(), activities.DomainRedefine, in)
	return err
}

// insertSeed puts a seed where the guest finds it at its next boot.
func (u *update) insertSeed(ctx workflow.Context, path string) error {
	if u.off {
		return nil
	}
	_, err := call[activities.Nothing](ctx, u.operation, u.at(), activities.DomainInsertSeed,
		domain.InsertSeedIn{Server: u.server, Seed: path})
	return err
}

// plugAndWire plugs NICs into the running guest and wires all that it then has. A guest that
// powers itself off meanwhile gets them with its next start.
func (u *update) plugAndWire(ctx workflow.Context, plugged, all []manifest.Port) error {
	for tried := 0; !u.off; tried++ {
		out, err := call[domain.PlugNICsOut](ctx, u.operation, u.at(), activities.DomainPlugNICs,
			domain.PlugNICsIn{Server: u.server, Ports: plugged})
		if err != nil || out.Off {
			u.off = out.Off
			return err
		}
		off, err := u.wirePorts(ctx, u.at().within(wireWithin(tried)), all)
		if err == nil && off {
			err = pause(ctx, tried) // until libvirt has seen it too
		} else if err == nil {
			return nil
		}
		if err != nil && (stopped(err) || classOf(err) != errs.Transient) {
			return err
		}
	}
	return nil
}

// wireWithin bounds all attempts to wire, the longer the more often they were in vain.
func wireWithin(tried int) time.Duration {
	within := wireTimeout
	for range tried {
		within = min(2*within, wireTimeoutMost)
	}
	return within
}

// takeBackNICs makes the running guest have the NICs that it had, with the settings that
// they had. One that it does not give back is connected to nothing until its next start.
func (u *update) takeBackNICs(ctx workflow.Context, ports []manifest.Port) error {
	u.unable = nil
	back := putBack(ctx)
	start := domain.StartOf(u.was, u.old)
	start.Disks = slices.Concat(start.Disks, u.added) // their own undo takes them out of the definition
	if err := u.redefine(back, start); err != nil {
		return err
	}
	if len(ports) > 0 {
		if err := u.unwire(ctx, ports); err != nil {
			return err
		}
		if err := u.askForNICs(ctx, ports); err != nil {
			return err
		}
	}
	if err := u.plugAndWire(back, u.gonePorts(), u.was.Status.Ports); err != nil {
		return err
	}
	u.was.Status.Conditions = u.nicsCondition(ctx, u.was.Status.Conditions)
	return u.insertSeed(back, u.was.Status.Seed)
}

// askForNICs unplugs NICs, and notes those that the guest keeps.
func (u *update) askForNICs(ctx workflow.Context, ports []manifest.Port) error {
	out, err := call[domain.UnplugNICsOut](ctx, u.operation, u.at(), activities.DomainUnplugNICs,
		domain.PlugNICsIn{Server: u.server, Ports: ports})
	u.unable = out.Left
	return err
}

// unplugNICs takes the NICs that are no longer declared out of the running guest; the undo
// of plugNICs gives them back.
func (u *update) unplugNICs(ctx workflow.Context) error {
	u.detail(ctx, stepUnplugNICs, "%s", strings.Join(u.change.DropNICs, ", "))
	if err := u.askForNICs(ctx, u.gonePorts()); err != nil {
		return err
	}
	if len(u.unable) > 0 {
		u.detail(ctx, stepUnplugNICs, "the guest keeps %s until its restart", strings.Join(u.unable, ", "))
	}
	return nil
}

// releaseNICs takes the NICs that are gone off the wire and frees what they had. It
// stands: no cancel stops it. Only now, since the host keeps on the wire what the record has.
func (u *update) releaseNICs(ctx workflow.Context) error {
	free, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	free = takeAway(free)
	u.detail(free, stepReleaseNICs, "%s", strings.Join(u.change.DropNICs, ", "))
	if ports := u.gonePorts(); len(ports) > 0 {
		if err := u.unwire(free, ports); err != nil {
			return err
		}
		if err := u.plugAndWire(free, nil, u.ports); err != nil { // their names in DNS went with the others'
			return err
		}
		if err := u.leave(free, leaving(ports, u.ports)); err != nil {
			return err
		}
	}
	if err := u.release(free, nicsNamed(u.old.NetworkInterface, u.change.DropNICs)); err != nil {
		return err
	}
	return u.prune(free, u.seeded.Path)
}
