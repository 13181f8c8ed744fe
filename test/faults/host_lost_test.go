package faults

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/manifest"
	"burrow.dev/burrow/workflows"
)

// TestALostHostIsWaitedForByNobodyAndPaysWhenItIsBack: the host's worker is dead, and another
// machine's goes on controlling. The guests run all the time.
func TestALostHostIsWaitedForByNobodyAndPaysWhenItIsBack(t *testing.T) {
	f := smallField(t, 3)
	deleted, standing, building := f.subject(manifest.KindServer, f.slots[0]), f.subject(manifest.KindServer, f.slots[1]), f.subject(manifest.KindServer, f.slots[2])
	require.NoError(t, f.orders.give(building.ref(), activities.NetworkWire, order{Deed: waitAfter, Times: 1}))
	control := f.controlOnly()
	t.Cleanup(control.stop)
	f.await(func(ctx context.Context) error {
		if err := errors.Join(withServer(ctx, deleted), withServer(ctx, standing)); err != nil {
			return err
		}
		build, err := provision(ctx, building)
		if err == nil {
			err = building.reached(ctx, activities.NetworkWire, 1)
		}
		if err != nil {
			return err
		}
		f.worker.kill()
		if err := errors.Join(control.start(), control.ready(ctx)); err != nil {
			return err
		}
		deletion, err := deletion(workflows.NameDeleteServer)(ctx, deleted)
		if err == nil {
			err = f.waitsForHost(ctx, deletion)
		}
		if err != nil {
			return err
		}
		err = untilEvery(ctx, time.Second, "the host is declared lost", func() error { // its lease has to end first
			_, err := f.burrow(ctx, "host", "lost", f.conf.Worker.Host.Name, "-y")
			return err
		})
		if err != nil {
			return err
		}
		end, err := f.finish(ctx, deletion)
		if err := errors.Join(end, err); err != nil {
			return err
		}
		end, err = f.finish(ctx, build)
		if err == nil && end == nil {
			err = errors.New("the build on the lost host ended well")
		}
		return err
	})
	_, found, err := deleted.record(t.Context())
	require.NoError(t, err)
	require.False(t, found)
	require.Len(t, deleted.guest(), 1, "nobody could end it")
	rec, _, err := building.record(t.Context())
	require.NoError(t, err)
	require.Equal(t, manifest.PhaseFailed, rec.Status.Phase)
	require.Contains(t, rec.Status.Message, f.conf.Worker.Host.Name)
	host, err := f.store.Get(t.Context(), manifest.KindHost, f.conf.Worker.Host.Name)
	require.NoError(t, err)
	require.Equal(t, manifest.PhaseLost, host.Status.Phase)

	control.stop()
	require.NoError(t, f.worker.start())
	f.await(f.worker.ready)
	f.await(func(ctx context.Context) error {
		return until(ctx, "the host has paid", func() error {
			host, err := f.store.Get(ctx, manifest.KindHost, f.conf.Worker.Host.Name)
			if err == nil && host.Status.Phase != manifest.PhaseReady {
				err = fmt.Errorf("it is %s and owes %v", host.Status.Phase, host.Status.Debts)
			}
			return err
		})
	})
	require.Empty(t, slices.Concat(deleted.guest(), building.guest()))
	require.Len(t, standing.guest(), 1)
	f.await(func(ctx context.Context) error { return errors.Join(standing.remove(ctx), building.remove(ctx)) })
	f.clean()
}

// controlOnly is a worker of a machine that runs no guests.
func (s *site) controlOnly() *keeper {
	part := s.worker.part
	part.Command.Args = append(slices.Clone(part.Command.Args[:len(part.Command.Args)-1]), "control")
	return newKeeper(string(s.conf.Folder), part, s.worker.env...)
}

// waitsForHost waits until an operation has asked a host to take something away.
func (s *site) waitsForHost(ctx context.Context, run client.WorkflowRun) error {
	return until(ctx, run.GetID()+" waits for its host", func() error {
		d, err := s.describe(ctx, run)
		if err != nil {
			return err
		}
		for _, a := range d.GetPendingActivities() {
			if _, ok := workflows.Owable(a.GetActivityType().GetName()); ok {
				return nil
			}
		}
		return errors.New("it has not come there")
	})
}
