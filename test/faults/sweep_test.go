package faults

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"go.temporal.io/sdk/client"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/manifest"
	"burrow.dev/burrow/workflows"
)

// sweeping is a sweep, which is one workflow for all resources.
var sweeping = operation{
	name: "sweep", kind: manifest.KindServer,
	start: func(ctx context.Context, c *subject) (client.WorkflowRun, error) {
		return c.begin(ctx, c.ref(), workflows.NameSweep, workflows.SweepIn{})
	},
	steps: []place{
		{step: "look at records", activity: activities.SweepUnfinished},
		{step: "look at hosts", activity: activities.SweepLookHost},
		{step: "look at addresses and keys", activity: activities.SweepLookState},
		{step: "compare with earlier sightings", activity: activities.SweepJudge},
		{step: "remove what was left behind", activity: activities.SweepClearHost},
		{step: "remove what was left behind (addresses)", activity: activities.SweepClearState},
	},
}

// sweepFaults are those that a sweep meets, by how it ends.
var sweepFaults = map[string]ending{
	"kill before": endsWell, "kill during": endsWell, "kill after": endsWell, "transient": endsWell, "timeout": endsWell,
	"heartbeat lost": endsWell, "Temporal and etcd killed": endsWell, "libvirtd killed": endsWell, "Open vSwitch killed": endsWell,
	"cancel before": endsTrue, "cancel after": endsTrue,
}

// TestASweepEndsWhateverHappens plants all that a server consists of without its record. The
// sweep that may remove it is disturbed; it removes all, or the next one does, and nothing
// of the slot's own networks and volume.
func TestASweepEndsWhateverHappens(t *testing.T) {
	f := smallField(t, 1)
	for _, at := range sweeping.steps {
		for _, fault := range faults {
			end, ok := sweepFaults[fault.name]
			if !ok {
				continue
			}
			c := cell{op: sweeping, at: at, fault: fault, end: end}
			t.Run(c.String(), func(t *testing.T) {
				f.await(func(ctx context.Context) error { return f.sweepOf(ctx, c) })
				f.clean()
			})
		}
	}
}

// sweepOf is one cell: an orphan is made, sighted, and swept.
func (f *field) sweepOf(ctx context.Context, c cell) error {
	orphan := f.subject(manifest.KindServer, f.slots[0])
	if err := withServer(ctx, orphan); err != nil {
		return err
	}
	if err := f.store.Delete(ctx, orphan.kind, orphan.name, orphan.last.Metadata.UID); err != nil {
		return err
	}
	sweep := *orphan
	sweep.id = workflows.IDSweep
	again := func() error {
		run, err := sweeping.start(ctx, &sweep)
		if err != nil {
			return err
		}
		end, err := f.finish(ctx, run)
		return errors.Join(end, err)
	}
	if err := again(); err != nil {
		return fmt.Errorf("the sweep that sights: %w", err)
	}
	if len(orphan.guest()) != 1 {
		return errors.New("the guest went at its first sighting")
	}
	if err := c.run(ctx, &sweep); err != nil {
		return err
	}
	if err := f.orders.forget(sweep.ref()); err != nil {
		return err
	}
	f.worker.signal(contSignal)
	if err := f.worker.ready(ctx); err != nil {
		return err
	}
	if c.end != endsWell {
		if err := again(); err != nil {
			return fmt.Errorf("the sweep after it: %w", err)
		}
	}
	return nil
}
