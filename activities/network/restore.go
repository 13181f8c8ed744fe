package network

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/ovsx"
	"burrow.dev/burrow/manifest"
)

// keepInterval is the pace of [Activities.Keep]: how long guests may be cut off after
// ovs-vswitchd was restarted. One round costs a few programs a network.
const keepInterval = 15 * time.Second

// Restore makes everything stand on this host that the records say: networks that servers
// here refer to, the ports that are on their bridges, the names of the servers. The host
// worker calls it when it starts, before it starts servers. Ports whose device is gone
// (after a reboot) are taken off their bridges. What fails does not keep the rest; all
// failures are returned.
func (a *Activities) Restore(ctx context.Context) error {
	networks, err := a.records.List(ctx, manifest.KindNetwork)
	if err != nil {
		return fmt.Errorf("restore networks of host %s: %w", a.host, err)
	}
	var failed []error
	for _, rec := range networks {
		failed = append(failed, a.restoreNetwork(ctx, rec))
	}
	failed = append(failed, a.restorePorts(ctx), a.restoreServers(ctx))
	return errors.Join(failed...)
}

// Keep restores again and again until ctx ends, so that a restart of Open vSwitch or the
// death of a network's DNS mends itself. Failures are logged and tried again.
func (a *Activities) Keep(ctx context.Context) {
	tick := time.NewTicker(keepInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if err := a.Restore(ctx); err != nil && ctx.Err() == nil {
				a.log.Warn("networks of this host are not as they should be", "error", err)
			}
		}
	}
}

func (a *Activities) restoreNetwork(ctx context.Context, rec manifest.Record) error {
	if rec.Status.Network == nil {
		return nil
	}
	unlock, err := a.networks.Lock(ctx, rec.Metadata.UID)
	if err != nil {
		return err
	}
	defer unlock()
	users, err := a.records.References(ctx, rec.Metadata.UID, a.host)
	if err != nil || len(users) == 0 {
		return err
	}
	return a.ensureNetwork(ctx, rec)
}

// restorePorts gives the ports on our bridges their flows again.
func (a *Activities) restorePorts(ctx context.Context) error {
	ports, err := a.sw.Ports(ctx, ovsx.KeyServer, "")
	if err != nil {
		return err
	}
	var failed []error
	for _, p := range ports {
		failed = append(failed, a.restorePort(ctx, p))
	}
	return errors.Join(failed...)
}

func (a *Activities) restorePort(ctx context.Context, seen ovsx.Port) error {
	unlock, err := a.networks.Lock(ctx, seen.ExternalIDs[ovsx.KeyNetwork])
	if err != nil {
		return err
	}
	defer unlock()
	port, err := a.sw.Port(ctx, seen.Name)
	if errors.Is(err, errs.ErrNotFound) {
		return nil // unwired meanwhile
	}
	if err != nil {
		return err
	}
	index, err := a.stack.DeviceIndex(port.Name)
	if err != nil {
		return err
	}
	object := "port " + port.Name
	if index == 0 {
		a.log.Info("take a port off its bridge whose device is gone", "port", port.Name, "bridge", port.Bridge)
		return a.sw.Transact(ctx, object, "take it off", func(tx *ovsx.Tx) { tx.DeletePort(port.Name) })
	}
	rules, err := ovsx.ParseRules(port.ExternalIDs[ovsx.KeyRules])
	if err != nil {
		return errs.NewTransient(object, "restore its flows", err)
	}
	if port, err = a.sw.AwaitPort(ctx, port.Name); err != nil {
		return err
	}
	return a.open(ctx, port, ovsx.Cookie(port.ExternalIDs[ovsx.KeyServer], port.ExternalIDs[ovsx.KeyNIC]), rules)
}

// restoreServers registers the names of this host's servers that are on, and wires what has a device
// and is on no bridge (OVSDB was emptied under living guests).
func (a *Activities) restoreServers(ctx context.Context) error {
	servers, err := a.records.List(ctx, manifest.KindServer)
	if err != nil {
		return err
	}
	var failed []error
	for _, rec := range servers {
		if rec.Status.Host == a.host {
			failed = append(failed, a.restoreServer(ctx, rec))
		}
	}
	return errors.Join(failed...)
}

func (a *Activities) restoreServer(ctx context.Context, rec manifest.Record) error {
	server := activities.Server{Name: rec.Metadata.Name, UID: rec.Metadata.UID}
	var failed []error
	for _, p := range firstOfEach(rec.Status.Ports) {
		failed = append(failed, a.restoreOn(ctx, server, p.NetworkUID))
	}
	return errors.Join(failed...)
}

// restoreOn restores a server on one network, as its record says now that the network is
// held: whoever unwires it meanwhile waits, and is not undone.
func (a *Activities) restoreOn(ctx context.Context, server activities.Server, networkUID string) error {
	unlock, err := a.networks.Lock(ctx, networkUID)
	if err != nil {
		return err
	}
	defer unlock()
	users, err := a.records.References(ctx, networkUID, a.host)
	if err != nil || !slices.Contains(users, server.UID) {
		return err
	}
	rec, err := a.records.Get(ctx, manifest.KindServer, server.Name)
	if errors.Is(err, errs.ErrNotFound) {
		return nil
	}
	if err != nil || rec.Metadata.UID != server.UID || !wanted(rec.Status.Phase) {
		return err
	}
	ports := slices.DeleteFunc(slices.Clone(rec.Status.Ports), func(p manifest.Port) bool { return p.NetworkUID != networkUID })
	runs, err := a.anyDevice(ports)
	if err != nil || !runs {
		return err // off, or going off: a stop takes its names away, a start gives them back
	}
	failed := []error{a.setNames(ctx, server, networkUID, ports)}
	for _, p := range ports {
		failed = append(failed, a.restoreWire(ctx, server, p))
	}
	return errors.Join(failed...)
}

// anyDevice tells whether one of the ports has its device, which is there as long as the
// guest is on.
func (a *Activities) anyDevice(ports []manifest.Port) (bool, error) {
	for _, p := range ports {
		index, err := a.stack.DeviceIndex(p.Device)
		if err != nil || index != 0 {
			return err == nil, err
		}
	}
	return false, nil
}

// wanted tells whether a server of that phase is to be on its networks whatever happens.
// While it is made or deleted, its operation alone wires and unwires it.
func wanted(phase manifest.Phase) bool {
	switch phase {
	case manifest.PhaseProvisioning, manifest.PhaseDeleting, manifest.PhaseFailed:
		return false
	}
	return true
}

func (a *Activities) restoreWire(ctx context.Context, server activities.Server, p manifest.Port) error {
	_, err := a.sw.Port(ctx, p.Device)
	if !errors.Is(err, errs.ErrNotFound) {
		return err
	}
	index, err := a.stack.DeviceIndex(p.Device)
	if err != nil || index == 0 {
		return err
	}
	return a.wirePort(ctx, server, p)
}
