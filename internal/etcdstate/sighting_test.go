package etcdstate

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
)

func TestSightingsOfSeveralAtOnceAreAllKept(t *testing.T) {
	s := newTestStore(t)
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var group errgroup.Group
	for n := range 8 {
		group.Go(func() error {
			_, err := s.Sight(t.Context(), func(seen Sightings) Sightings {
				seen[fmt.Sprint(n)] = at
				return seen
			})
			return err
		})
	}
	require.NoError(t, group.Wait())
	all, err := s.Sight(t.Context(), func(seen Sightings) Sightings { return seen })
	require.NoError(t, err)
	require.Len(t, all, 8)

	_, err = s.Sight(t.Context(), func(Sightings) Sightings { return nil })
	require.NoError(t, err)
	keys, err := s.KeysBelow(t.Context(), "sweep")
	require.NoError(t, err)
	require.Empty(t, keys, "nothing is left of it")
}

func TestOfTooManySightingsTheOldestAreKept(t *testing.T) {
	s := newTestStore(t)
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	all, err := s.Sight(t.Context(), func(Sightings) Sightings {
		many := Sightings{}
		for n := range 3 * sightingsMost {
			many[fmt.Sprintf("kvm-with-quite-a-long-name/volume/server-with-a-name-of-sixty-three-characters-%04d", n)] = start.Add(time.Duration(n) * time.Minute)
		}
		return many
	})
	require.NoError(t, err)
	require.Len(t, all, sightingsMost)
	for at := range maps.Values(all) {
		require.True(t, at.Before(start.Add(sightingsMost*time.Minute)))
	}
}
