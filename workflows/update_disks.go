package workflows

import (
	"slices"
	"strings"

	"go.temporal.io/sdk/workflow"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/activities/domain"
	"burrow.dev/burrow/activities/state"
	"burrow.dev/burrow/activities/volume"
	"burrow.dev/burrow/manifest"
)

// volumes makes the new disks of the server's own, and takes the volumes that it gets.
func (u *update) volumes(ctx workflow.Context) error {
	u.add(stepVolumes, u.unmake)
	want := manifest.ServerSpec{Storage: u.change.AddDisks}
	if names := attachedNames(want); len(names) > 0 {
		out, err := call[state.VolumesOut](ctx, u.operation, onControl(quickTimeout), activities.StateAttachVolumes,
			state.VolumesIn{Server: u.server, Names: names})
		if err != nil {
			return err
		}
		u.attached = out.Records
	}
	if on, err := hostOf(u.attached); err != nil {
		return err
	} else if on != "" && on != u.host {
		return elsewhere(u.server, u.host, on)
	}
	in := volume.AddIn{Server: u.server, Storage: u.change.AddDisks, Attached: u.attached}
	for _, d := range u.was.Status.Disks {
		in.Taken = append(in.Taken, d.Target)
	}
	u.detail(ctx, stepVolumes, "%d data", len(in.Storage))
	out, err := call[volume.AddOut](ctx, u.operation, onHost(u.host, volumeTimeout), activities.VolumeAdd, in)
	if err != nil {
		return err
	}
	u.added = out.Disks
	return nil
}

// unmake deletes the disks that were made, and gives the volumes back.
func (u *update) unmake(ctx workflow.Context) error {
	want := manifest.ServerSpec{Storage: u.change.AddDisks}
	var names []string
	for _, s := range ownedStorage(want) {
		names = append(names, s.Name)
	}
	if len(names) > 0 {
		if _, err := call[activities.Nothing](ctx, u.operation, u.at(), activities.VolumeDrop,
			volume.DropIn{Server: u.server, Names: names}); err != nil {
			return err
		}
	}
	return u.giveBack(ctx, attachedNames(want))
}

// giveBack makes Volumes free for other servers.
func (u *update) giveBack(ctx workflow.Context, names []string) error {
	if len(names) == 0 {
		return nil
	}
	_, err := call[state.VolumesOut](ctx, u.operation, onControl(quickTimeout), activities.StateDetachVolumes,
		state.VolumesIn{Server: u.server, Names: names})
	return err
}

// disksNow are the server's disks as they become.
func (u *update) disksNow() []manifest.Disk {
	var disks []manifest.Disk
	for _, d := range u.was.Status.Disks {
		if d.Owned || !slices.Contains(u.change.DropDisks, d.Name) {
			disks = append(disks, d)
		}
	}
	return append(disks, u.added...)
}

// plug plugs the new disks into the running guest.
func (u *update) plug(ctx workflow.Context) error {
	in := domain.PlugIn{Server: u.server, Disks: u.added}
	u.add(stepPlug, func(ctx workflow.Context) error {
		_, err := call[activities.Nothing](ctx, u.operation, u.at(), activities.DomainUnplug, in)
		return err
	})
	_, err := call[activities.Nothing](ctx, u.operation, u.at(), activities.DomainPlug, in)
	return err
}

// grow makes disks larger. That is not undone: a file system may have grown into it. What
// an undo writes down is how large they are.
func (u *update) grow(ctx workflow.Context) error {
	u.add(stepGrow, u.measure)
	for _, g := range u.change.Grow {
		u.detail(ctx, stepGrow, "%s to %d GiB", g.Disk, g.GiB)
		if err := u.enlarge(ctx, g.Disk, g.GiB); err != nil {
			return err
		}
	}
	return nil
}

// measure looks how large the disks are that were to grow.
func (u *update) measure(ctx workflow.Context) error {
	if u.undoVersion < undoTells {
		return nil
	}
	for _, g := range u.change.Grow {
		if err := u.enlarge(ctx, g.Disk, 0); err != nil {
			return err
		}
	}
	return nil
}

// enlarge makes a disk at least so large, and takes down how large it is.
func (u *update) enlarge(ctx workflow.Context, disk string, gib int) error {
	i := slices.IndexFunc(u.was.Status.Disks, func(d manifest.Disk) bool { return d.Name == disk && d.Owned })
	if i < 0 {
		return nil // ChangeServer names disks of the server's own
	}
	disks := slices.Clone(u.was.Status.Disks)
	out, err := call[domain.GrowOut](ctx, u.operation, u.at(), activities.DomainGrow,
		domain.GrowIn{Server: u.server, Disk: disks[i], GiB: max(gib, disks[i].SizeGiB)})
	if err != nil {
		return err
	}
	disks[i].SizeGiB = max(disks[i].SizeGiB, gib, out.GiB)
	u.was.Status.Disks = disks // also in the record that an undo writes
	return nil
}

// detach makes the volumes free that the server no longer has. It stands: no cancel stops it.
func (u *update) detach(ctx workflow.Context) error {
	free, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	u.detail(free, stepDetach, "%s", strings.Join(u.change.DropDisks, ", "))
	return u.giveBack(free, u.change.DropDisks)
}
