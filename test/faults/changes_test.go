package faults

import (
	"context"

	"go.temporal.io/sdk/client"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/manifest"
	"burrow.dev/burrow/workflows"
)

// Worlds before and after a change of a server that stands.
const (
	worldLarger      = "a larger server, without its volume"
	worldPoor        = "a running server without a volume"
	worldRich        = "a running server with one more disk and a volume"
	worldGrown       = "a running server with a grown disk"
	worldPoorStopped = "a stopped server without a volume"
	worldRebuilt     = "a server on its second boot disk"
)

// larger leaves the processors: the lab's two, four times over, are taken by eight cells.
func larger(spec *manifest.ServerSpec) {
	spec.Memory = 96
	spec.Storage = append(spec.Storage[:1], ownDisk("more"))
}

// poor leaves the Volume out, which is the last disk.
func poor(spec *manifest.ServerSpec) { spec.Storage = spec.Storage[:1] }

func rich(spec *manifest.ServerSpec) { spec.Storage = append(spec.Storage, ownDisk("more")) }

func grown(spec *manifest.ServerSpec) {
	disk := *spec.Storage[0].Spec
	disk.Size = 2
	spec.Storage[0].Spec = &disk
}

func ownDisk(name string) manifest.Storage {
	return manifest.Storage{Name: name, Spec: &manifest.VolumeSpec{Size: 1}}
}

// updated applies the subject's manifest with a change.
func updated(restart bool, change func(*manifest.ServerSpec)) func(context.Context, *subject) (client.WorkflowRun, error) {
	return func(ctx context.Context, c *subject) (client.WorkflowRun, error) {
		in, err := c.provisionIn(ctx)
		if err != nil {
			return nil, err
		}
		change(&in.Spec)
		return c.begin(ctx, c.ref(), workflows.NameUpdateServer, workflows.UpdateServerIn{ProvisionServerIn: in, Restart: restart})
	}
}

func rebuild(ctx context.Context, c *subject) (client.WorkflowRun, error) {
	return c.begin(ctx, c.ref(), workflows.NameRebuildServer, workflows.RebuildServerIn{Name: c.name})
}

// changes are the operations on a server that stands, which go back when they are given up.
func changes() []operation {
	resize := place{step: "resize reservation", activity: activities.PlaceResize, atomic: true}
	add := place{step: "build volumes", activity: activities.VolumeAdd}
	ready := place{step: "wait until ready", activity: activities.GuestWaitReady}
	return []operation{
		{
			name: "update a server, with a restart", kind: manifest.KindServer, from: worldRunning, ends: worldLarger, holds: true,
			prepare: withServer, start: updated(true, larger),
			steps: append(steps([]place{resize, add}, powerOff, powerOn, []place{ready}),
				place{step: "detach volumes", activity: activities.StateDetachVolumes, atomic: true, settled: true}),
			undos: append([]place{
				{step: "undo: shut down", activity: activities.DomainShutdown},
				{step: "undo: unwire OVS", activity: activities.NetworkUnwire},
				{step: "undo: ensure networks", activity: activities.NetworkEnsure},
				{step: "undo: start as before", activity: activities.DomainStart},
				{step: "undo: wire OVS", activity: activities.NetworkWire},
				{step: "undo: wire OVS (CPUs)", activity: activities.DomainResume},
				{step: "undo: remove new disks", activity: activities.VolumeDrop},
			}, undoRecord...),
			breaks: neverReady,
		},
		{
			name: "plug disks into a running server", kind: manifest.KindServer, from: worldPoor, ends: worldRich, holds: true,
			prepare: built(poor), start: updated(false, rich),
			steps: []place{
				atBegin, resize,
				{step: "build volumes (attach)", activity: activities.StateAttachVolumes, atomic: true},
				add,
				{step: "plug in disks", activity: activities.DomainPlug, unplugs: true},
				{step: atEnd.step, activity: atEnd.activity, atomic: true, unplugs: true},
			},
		},
		{
			name: "grow a disk", kind: manifest.KindServer, from: worldRunning, ends: worldGrown, holds: true,
			prepare: withServer, start: updated(false, grown),
			steps: []place{
				atBegin, resize,
				{step: "grow disks", activity: activities.DomainGrow, stays: true},
				{step: atEnd.step, activity: atEnd.activity, atomic: true, stays: true},
			},
		},
		{
			name: "take a volume off a stopped server", kind: manifest.KindServer, from: worldStopped, ends: worldPoorStopped, holds: true,
			prepare: withStoppedServer, start: updated(false, poor),
			steps: append(steps(), place{step: "detach volumes", activity: activities.StateDetachVolumes, atomic: true, settled: true}),
		},
		{
			name: "rebuild a server", kind: manifest.KindServer, from: worldRunning, ends: worldRebuilt, holds: true,
			again:   worldRunning, // back under the first of its two names
			prepare: withServer, start: rebuild,
			steps: append(steps([]place{
				{step: "fetch auth keys", activity: activities.KeysFetch},
				{step: "allocate addresses", activity: activities.IPAMAllocate},
				{step: "ensure image", activity: activities.ImageEnsure},
				{step: "build boot volume", activity: activities.VolumeRebuild},
				{step: "write seed", activity: activities.SeedWrite},
			}, powerOff, powerOn, []place{ready}),
				place{step: "delete old boot volume", activity: activities.VolumeDiscard, settled: true},
				place{step: "delete old boot volume (seed)", activity: activities.SeedPrune, settled: true}),
			undos: append([]place{
				{step: "undo: shut down", activity: activities.DomainShutdown},
				{step: "undo: unwire OVS", activity: activities.NetworkUnwire},
				{step: "undo: ensure networks", activity: activities.NetworkEnsure},
				{step: "undo: start as before", activity: activities.DomainStart},
				{step: "undo: wire OVS", activity: activities.NetworkWire},
				{step: "undo: wire OVS (CPUs)", activity: activities.DomainResume},
				{step: "undo: delete new seed", activity: activities.SeedPrune},
				{step: "undo: delete new boot volume", activity: activities.VolumeDiscard},
			}, undoRecord[1:]...),
			breaks: neverReady,
		},
	}
}

// undoRecord are the last compensations of a change.
var undoRecord = []place{
	{step: "undo: resize reservation", activity: activities.PlaceResize, atomic: true},
	{step: "undo: record", activity: activities.StateFinish, atomic: true},
}
