package faults

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"golang.org/x/sync/errgroup"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/manifest"
	"burrow.dev/burrow/workflows"
)

// TestANewWorkerBinaryInTheMiddleOfOperationsHarmsNone replaces the worker's program, twice,
// while twenty operations of every kind are under way: builds, a delete, a restart.
func TestANewWorkerBinaryInTheMiddleOfOperationsHarmsNone(t *testing.T) {
	const width = 20
	f := smallField(t, width)
	f.learn(powers())
	var subjects []*subject
	for i := range width {
		subjects = append(subjects, f.subject(manifest.KindServer, f.slots[i]))
	}
	// Three operations have a server to work on.
	f.await(func(ctx context.Context) error {
		var group errgroup.Group
		for _, c := range subjects[:3] {
			group.Go(func() error { return withServer(ctx, c) })
		}
		return group.Wait()
	})
	// Some wait in the middle of a step for the first deployment.
	stops := []string{activities.VolumeBuild, activities.NetworkEnsure, activities.DomainStart, activities.NetworkWire}
	waits := map[*subject]string{}
	for i, c := range subjects[3:] {
		if i%2 == 0 {
			waits[c] = stops[(i/2)%len(stops)]
			require.NoError(t, f.orders.give(c.ref(), waits[c], order{Deed: waitAfter, Times: 1}))
		}
	}
	f.await(func(ctx context.Context) error {
		runs := make([]client.WorkflowRun, width)
		var err error
		for i, c := range subjects {
			start := provision
			switch i {
			case 0:
				start = deletion(workflows.NameDeleteServer)
			case 1:
				start = power(workflows.PowerRestart)
			case 2:
				start = power(workflows.PowerStop)
			}
			if runs[i], err = start(ctx, c); err != nil {
				return err
			}
		}
		for c, activity := range waits {
			if err := c.reached(ctx, activity, 1); err != nil {
				return err
			}
		}
		for n := range 2 {
			if err := f.deploy(ctx, fmt.Sprintf("v99.%d", n)); err != nil {
				return err
			}
		}
		for c, activity := range waits {
			if err := f.orders.release(c.ref(), activity); err != nil {
				return err
			}
		}
		for i, run := range runs {
			end, err := f.finish(ctx, run)
			if err := errors.Join(err, end); err != nil {
				return fmt.Errorf("operation %d, %s: %w", i, run.GetID(), err)
			}
		}
		return nil
	})
	census, err := f.census(t.Context())
	require.NoError(t, err)
	for i, c := range subjects {
		want := f.worlds[map[int]string{0: worldGone, 2: worldStopped}[i]]
		if i != 0 && i != 2 {
			want = f.worlds[worldRunning]
		}
		_, _, err := c.record(t.Context())
		require.NoError(t, err)
		require.NoError(t, compare(c.traces(census, f.before), want), "operation %d on %s", i, c.ref())
	}
	f.await(func(ctx context.Context) error {
		var group errgroup.Group
		for _, c := range subjects {
			group.Go(func() error { return c.remove(ctx) })
		}
		return group.Wait()
	})
	f.clean()
}

// deploy puts another binary in the worker's place, as `burrow up` does when the program's
// file was replaced: the old one is asked to end, then the new one starts.
func (s *site) deploy(ctx context.Context, version string) error {
	program := filepath.Join(s.t.TempDir(), "burrow")
	self, err := os.Open("/proc/self/exe")
	if err != nil {
		return err
	}
	defer self.Close()
	file, err := os.OpenFile(program, os.O_CREATE|os.O_WRONLY, 0o755)
	if err == nil {
		_, err = io.Copy(file, self)
		err = errors.Join(err, file.Close())
	}
	if err != nil {
		return err
	}
	s.worker.stop()
	s.worker.part.Command.Path = program
	s.worker.env = append(s.worker.env, versionEnv+"="+version)
	if err := s.worker.start(); err != nil {
		return err
	}
	return s.worker.ready(ctx)
}
