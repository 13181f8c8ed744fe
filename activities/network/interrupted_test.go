package network_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"burrow.dev/burrow/activities/network"
	"burrow.dev/burrow/manifest"
)

// TestWhereverItStopsUndoLeavesNothingAndRetryFinishes cuts the steps off after more and
// more time; cancelled programs are killed, as those of a killed worker would not even be.
func TestWhereverItStopsUndoLeavesNothingAndRetryFinishes(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	s := newSite(t)
	rec := s.network(t, "db-net", nil, "")
	db := s.newGuest(t, "db", rec, nil)
	before := inventory(t)
	undo := func() {
		t.Helper()
		_, err := s.Unwire(t.Context(), network.UnwireIn{Server: db.server, Ports: db.ports})
		require.NoError(t, err)
		_, err = s.Release(t.Context(), network.ReleaseIn{Server: db.server, Ports: db.ports})
		require.NoError(t, err)
		require.Equal(t, before, inventory(t))
	}
	finished := false
	for try := 0; !finished; try++ {
		patience := time.Duration(5+20*try) * time.Millisecond
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		_, err := s.Ensure(ctx, network.EnsureIn{Server: db.server, Ports: db.ports})
		if err == nil {
			_, err = s.Wire(ctx, network.WireIn{Server: db.server, Ports: db.ports})
		}
		cancel()
		finished = err == nil
		s.restart(t)
		if try%2 == 0 {
			s.provisionAgain(t, db)
			require.True(t, echoes(t, db.ns, "172.16.90.1"))
		}
		undo()
	}
}

// provisionAgain retries both steps.
func (s *site) provisionAgain(t *testing.T, g *guest) {
	t.Helper()
	_, err := s.Ensure(t.Context(), network.EnsureIn{Server: g.server, Ports: g.ports})
	require.NoError(t, err)
	_, err = s.Wire(t.Context(), network.WireIn{Server: g.server, Ports: g.ports})
	require.NoError(t, err)
}

// TestServersComeAndGoAtOnce: a network is never taken down under a server that starts.
func TestServersComeAndGoAtOnce(t *testing.T) {
	s := newSite(t)
	nets := []manifest.Record{s.network(t, "red", isolated, ""), s.network(t, "blue", isolated, "")}
	var guests []*guest
	for i := range 6 {
		guests = append(guests, s.newGuest(t, fmt.Sprintf("s%d", i), nets[i%2], func(p *manifest.Port) {
			p.Addresses = []string{fmt.Sprintf("172.16.90.%d/24", 10+i)}
		}))
	}
	before := inventory(t)
	var all sync.WaitGroup
	failures := make(chan error, 100)
	for _, g := range guests {
		all.Go(func() {
			for range 3 {
				_, err := s.Ensure(t.Context(), network.EnsureIn{Server: g.server, Ports: g.ports})
				failures <- err
				_, err = s.Wire(t.Context(), network.WireIn{Server: g.server, Ports: g.ports})
				failures <- err
				_, err = s.Unwire(t.Context(), network.UnwireIn{Server: g.server, Ports: g.ports})
				failures <- err
				_, err = s.Release(t.Context(), network.ReleaseIn{Server: g.server, Ports: g.ports})
				failures <- err
			}
		})
	}
	all.Wait()
	close(failures)
	for err := range failures {
		require.NoError(t, err)
	}
	require.Equal(t, before, inventory(t))
}
