package faults

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/internal/config"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
)

const (
	// massMost is what one host is promised to take at once.
	massMost = 200
	// eventsMost keeps every history far from Temporal's limits.
	eventsMost = 2000
	// massPatience: a busy machine of two cores starts a guest in a second or two.
	massPatience = 30 * time.Minute
)

// TestTwoHundredServersAtOnceAllEnd applies 200 servers on one host:
// all end Running, no history grows without bound, and meanwhile the CLI answers. How fast
// and with how much memory is said, not required.
func TestTwoHundredServersAtOnceAllEnd(t *testing.T) {
	longForm(t)
	s := newSite(t)
	f := newField(s, 1)
	var text strings.Builder
	for i := range massMost {
		fmt.Fprintf(&text, "apiVersion: v1\nkind: Server\nmetadata: {name: m%03dz}\nspec:\n  {cpu: 1, memory: 64, mmImage: blank, readiness: running, networkInterface: [{name: a, networkname: %s}]}\n---\n", i, f.slots[0].network(0))
	}
	file := filepath.Join(t.TempDir(), "mass.yaml")
	require.NoError(t, writeFile(file, text.String()))
	idle := s.answer(t)
	began := time.Now()
	s.must("apply", "--detach", "-f", file)
	ctx, cancel := context.WithTimeout(t.Context(), massPatience)
	defer cancel()
	var answers []time.Duration
	require.NoError(t, untilEvery(ctx, time.Second, "200 servers Running", func() error {
		answers = append(answers, s.answer(t))
		return s.allRunning(ctx, massMost)
	}))
	slices.Sort(answers)
	t.Logf("%d servers Running after %s", massMost, time.Since(began).Round(time.Second))
	t.Logf("burrow get servers: %s idle; while they were built: median %s, worst %s", idle.Round(time.Millisecond), answers[len(answers)/2].Round(time.Millisecond), answers[len(answers)-1].Round(time.Millisecond))
	t.Logf("memory at its highest: worker %s, Temporal and etcd %s", memory(t, s.worker.pid()), memory(t, s.devstack.pid()))
	longest, id := s.longestHistory(ctx, t)
	t.Logf("longest history: %d events, %s", longest, id)
	require.Less(t, longest, int64(eventsMost), id)

	began = time.Now()
	args := []string{"delete", "-y"}
	for i := range massMost {
		args = append(args, fmt.Sprintf("server/m%03dz", i))
	}
	_, err := s.burrow(ctx, args...)
	require.NoError(t, err)
	t.Logf("%d servers deleted after %s", massMost, time.Since(began).Round(time.Second))
	f.clean()
}

// answer is how long the CLI takes to list the servers.
func (s *site) answer(t *testing.T) time.Duration {
	t.Helper()
	began := time.Now()
	s.must("get", "servers")
	return time.Since(began)
}

func (s *site) allRunning(ctx context.Context, n int) error {
	all, err := s.store.List(ctx, manifest.KindServer)
	if err != nil {
		return err
	}
	running := 0
	for _, rec := range all {
		switch rec.Status.Phase {
		case manifest.PhaseRunning:
			running++
		case manifest.PhaseFailed, manifest.PhaseHeld:
			return fmt.Errorf("server/%s is %s: %s", rec.Metadata.Name, rec.Status.Phase, rec.Status.Message)
		}
	}
	if running < n {
		return fmt.Errorf("%d of %d run", running, n)
	}
	return nil
}

// longestHistory is that of all workflows that Temporal knows.
func (s *site) longestHistory(ctx context.Context, t *testing.T) (most int64, id string) {
	t.Helper()
	var page []byte
	for {
		res, err := s.temporal.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{Namespace: config.DefaultNamespace, NextPageToken: page})
		require.NoError(t, err)
		for _, e := range res.GetExecutions() {
			if n := e.GetHistoryLength(); n > most {
				most, id = n, e.GetExecution().GetWorkflowId()
			}
		}
		if page = res.GetNextPageToken(); len(page) == 0 {
			return most, id
		}
	}
}

var highWater = regexp.MustCompile(`VmHWM:\s+(\d+) kB`)

// memory is the most that a process had resident.
func memory(t *testing.T, pid int) string {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	require.NoError(t, err)
	found := highWater.FindSubmatch(text)
	require.NotNil(t, found)
	kib, err := strconv.Atoi(string(found[1]))
	require.NoError(t, err)
	return fmt.Sprintf("%d MiB", kib>>10)
}

// TestADeleteOfABusyServerEndsAlthoughItsCommandWasKilled: who asks may go.
func TestADeleteOfABusyServerEndsAlthoughItsCommandWasKilled(t *testing.T) {
	f := smallField(t, 1)
	c := f.subject(manifest.KindServer, f.slots[0])
	require.NoError(t, f.orders.give(c.ref(), activities.DomainStart, order{Deed: waitAfter, Times: 1}))
	f.await(func(ctx context.Context) error {
		if _, err := provision(ctx, c); err != nil {
			return err
		}
		if err := c.reached(ctx, activities.DomainStart, 1); err != nil {
			return err
		}
		asking, kill := context.WithCancel(ctx)
		asked := make(chan error, 1)
		go func() {
			_, err := f.burrow(asking, "delete", "server", c.name, "-y")
			asked <- err
		}()
		// The delete is Temporal's from the moment that the build is asked to end.
		err := until(ctx, "the delete waits", func() error {
			res, err := f.temporal.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
				Namespace: config.DefaultNamespace, Query: "WorkflowType = 'StartNext' AND ExecutionStatus = 'Running'",
			})
			if err == nil && len(res.GetExecutions()) == 0 {
				err = errors.New("not yet")
			}
			return err
		})
		kill() // SIGKILL
		<-asked
		if err := errors.Join(err, f.orders.release(c.ref(), activities.DomainStart)); err != nil {
			return err
		}
		return until(ctx, c.ref()+" is gone", func() error {
			rec, err := f.store.Get(ctx, c.kind, c.name)
			if errors.Is(err, errs.ErrNotFound) {
				return nil
			}
			return fmt.Errorf("it is %s (%w)", rec.Status.Phase, err)
		})
	})
	f.clean()
}
