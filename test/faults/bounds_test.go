package faults

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
)

// What is promised in seconds is measured and said here; what is required is that it
// happens, within a bound that a busy machine keeps.

// TestAStepStartsAgainSoonAfterItsWorkersReturn: promised 15 s after the return, by the
// product's own heartbeats.
func TestAStepStartsAgainSoonAfterItsWorkersReturn(t *testing.T) {
	f := smallField(t, 1)
	require.NoError(t, f.orders.keepTimes())
	c := f.subject(manifest.KindServer, f.slots[0])
	require.NoError(t, f.orders.give(c.ref(), activities.VolumeBuild, order{Deed: killBefore, Times: 1}))
	f.await(func(ctx context.Context) error {
		run, err := provision(ctx, c)
		if err == nil {
			err = c.reached(ctx, activities.VolumeBuild, 1)
		}
		if err == nil {
			err = f.worker.ready(ctx)
		}
		returned := time.Now()
		if err == nil {
			var end error
			end, err = c.finish(ctx, run)
			err = errors.Join(err, end)
		}
		starts := f.orders.starts(c.ref(), activities.VolumeBuild)
		if err == nil && len(starts) != 2 {
			err = fmt.Errorf("the step started %d times", len(starts))
		}
		if err == nil {
			t.Logf("started again %s after the worker's return, %s after its death (promised: 15 s after the return)",
				starts[1].Sub(returned).Round(time.Millisecond), starts[1].Sub(starts[0]).Round(time.Millisecond))
		}
		return errors.Join(err, c.remove(ctx))
	})
}

// TestAFullyBuiltServerIsUndoneQuickly: promised within 10 s.
func TestAFullyBuiltServerIsUndoneQuickly(t *testing.T) {
	f := smallField(t, 1)
	c := f.subject(manifest.KindServer, f.slots[0])
	require.NoError(t, f.orders.give(c.ref(), activities.GuestWaitReady, order{Deed: failAfter, Class: string(errs.Permanent), Times: 1}))
	f.await(func(ctx context.Context) error {
		run, err := provision(ctx, c)
		if err == nil {
			err = c.reached(ctx, activities.GuestWaitReady, 1)
		}
		began := time.Now()
		if err != nil {
			return err
		}
		if end, err := c.finish(ctx, run); err != nil || end == nil {
			return fmt.Errorf("it should have failed: %w", err)
		}
		t.Logf("undone in %s (promised: 10 s)", time.Since(began).Round(time.Millisecond))
		return c.remove(ctx)
	})
	f.clean()
}

// TestACancelledStepsProcessesEndQuickly: promised within 2 s of the cancel.
func TestACancelledStepsProcessesEndQuickly(t *testing.T) {
	f := smallField(t, 1)
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o755))
	// The inventory is the user's program: it runs in the syntax check, and does not end.
	const marker = "86399"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "inventory.sh"), []byte("#!/bin/sh\nexec sleep "+marker+"\n"), 0o755))
	require.NoError(t, writeFile(filepath.Join(dir, "site.yaml"), "- hosts: all\n  gather_facts: false\n  tasks: []\n"))
	file := filepath.Join(dir, "db.yaml")
	require.NoError(t, writeFile(file, fmt.Sprintf(`apiVersion: v1
kind: Server
metadata: {name: slow}
spec:
  cpu: 1
  memory: 64
  mmImage: blank
  readiness: ssh
  networkInterface: [{name: a, networkname: %s}]
  ansible: {playbook: [site.yaml], inventory: inventory.sh}
`, f.slots[0].network(0))))
	f.must("apply", "--detach", "-f", file)
	f.keep("blobs: ") // the playbook's bundle outlives its operations
	running := func() []int { return processes("sleep " + marker) }
	f.await(func(ctx context.Context) error {
		return until(ctx, "the user's program runs", func() error {
			if len(running()) == 0 {
				return errors.New("it does not")
			}
			return nil
		})
	})
	began := time.Now()
	f.must("cancel", "server/slow", "--detach")
	f.await(func(ctx context.Context) error {
		return until(ctx, "its processes are gone", func() error {
			if pids := running(); len(pids) > 0 {
				return fmt.Errorf("%v run", pids)
			}
			return nil
		})
	})
	t.Logf("dead %s after the cancel was asked for, its command included (promised: 2 s)", time.Since(began).Round(time.Millisecond))
	f.await(func(ctx context.Context) error {
		return until(ctx, "server/slow is gone", func() error {
			_, err := f.store.Get(ctx, manifest.KindServer, "slow")
			if errors.Is(err, errs.ErrNotFound) {
				return nil
			}
			return fmt.Errorf("it is there (%w)", err)
		})
	})
	f.clean()
}

// smallField is a field on an installation of its own, in the long form.
func smallField(t *testing.T, width int) *field {
	t.Helper()
	longForm(t)
	return newField(newSite(t), width)
}

// processes are those whose command line contains text.
func processes(text string) []int {
	entries, _ := os.ReadDir("/proc")
	var found []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		line, err := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
		if err == nil && strings.Contains(strings.ReplaceAll(string(line), "\x00", " "), text) {
			found = append(found, pid)
		}
	}
	return found
}
