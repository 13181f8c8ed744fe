package worker

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"burrow.dev/burrow/internal/capacity"
	"burrow.dev/burrow/manifest"
)

func TestSummariesAreTheRecordsAsTheyAreNow(t *testing.T) {
	s := newSite(t)
	r := NewRecords(s.store)
	list := func() (out []string) {
		t.Helper()
		require.NoError(t, r.EachSummary(t.Context(), manifest.KindServer, func(encoded []byte) error {
			var rec manifest.Record
			require.NoError(t, json.Unmarshal(encoded, &rec))
			full, err := s.store.Get(t.Context(), manifest.KindServer, rec.Metadata.Name)
			require.NoError(t, err)
			require.Equal(t, full.Metadata.ResourceVersion, rec.Metadata.ResourceVersion)
			require.Equal(t, full.Metadata.CreatedAt, rec.Metadata.CreatedAt)
			require.Equal(t, full.Metadata.Labels, rec.Metadata.Labels)
			require.Less(t, len(encoded), 1000, "of %d", len(full.Spec))
			out = append(out, fmt.Sprintf("%s %s %s %s", rec.Metadata.Name, rec.Status.Phase, rec.Status.Host, rec.Status.Ports[0].Addresses[0]))
			return nil
		}))
		return out
	}
	require.Empty(t, list())
	for i := range 300 { // more than one transaction reads
		_, err := s.store.Create(t.Context(), typicalServer(i))
		require.NoError(t, err)
	}
	require.Len(t, list(), 300)
	_, err := s.store.Update(t.Context(), manifest.KindServer, "web-00001", func(r *manifest.Record) error { r.Status.Phase = manifest.PhaseStopped; return nil })
	require.NoError(t, err)
	rec, err := s.store.Get(t.Context(), manifest.KindServer, "web-00002")
	require.NoError(t, err)
	require.NoError(t, s.store.Delete(t.Context(), manifest.KindServer, "web-00002", rec.Metadata.UID))
	require.Equal(t, []string{"web-00000 Running kvm00 10.0.0.0/16", "web-00001 Stopped kvm01 10.0.0.1/16", "web-00003 Running kvm03 10.0.0.3/16"}, list()[:3])

	require.NoError(t, s.store.RegisterHost(t.Context(), "kvm1", nil, capacity.Spec{CPU: 4}))
	require.NoError(t, r.EachSummary(t.Context(), manifest.KindHost, func(encoded []byte) error {
		require.Contains(t, string(encoded), `"phase":"Unknown"`)
		require.Contains(t, string(encoded), `"cpu":4`)
		return nil
	}))
}
