package etcdstate

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"burrow.dev/burrow/manifest"
)

func TestWhatCanBeReadCanBeListed(t *testing.T) {
	s := newTestStore(t)
	summaries := NewSummaries(s)
	key := s.Key("servers", "odd")
	for _, value := range []string{
		`{"kind":"Server","metadata":{"name":"odd"}}`,
		`{"kind":"Server","metadata":{"name":"odd"},"spec":{"cpu":"many"}}`,
		`{"kind":"Server","metadata":{"name":"odd"},"spec":[]}`,
	} {
		_, err := s.client.Put(t.Context(), key, value)
		require.NoError(t, err)
		read, err := s.Get(t.Context(), manifest.KindServer, "odd")
		require.NoError(t, err)
		listed := 0
		require.NoError(t, summaries.Each(t.Context(), manifest.KindServer, func(encoded []byte) error {
			var rec manifest.Record
			require.NoError(t, json.Unmarshal(encoded, &rec), value)
			require.Equal(t, read.Metadata, rec.Metadata, value)
			listed++
			return nil
		}))
		require.Equal(t, 1, listed)
	}
	_, err := s.client.Put(t.Context(), key, `{"kind":7}`)
	require.NoError(t, err)
	require.NoError(t, summaries.Each(t.Context(), manifest.KindServer, func(encoded []byte) error {
		require.Contains(t, string(encoded), `"phase":"Damaged"`)
		return nil
	}))
}

func TestAListedPlaybookHasItsServersAndItsRun(t *testing.T) {
	s := newTestStore(t)
	want := manifest.Record{
		Kind: manifest.KindPlaybook, Metadata: manifest.RecordMeta{Metadata: manifest.Metadata{Name: "fleet"}, UID: "uid-1"},
		Status: manifest.Status{
			Phase: manifest.PhaseReady, Targets: []string{"web@uid-2.0"},
			Playbook: &manifest.PlaybookStatus{RunID: "run-1", Recap: map[string]manifest.Recap{"web": {OK: 2}}},
		},
	}
	_, err := s.Create(t.Context(), want)
	require.NoError(t, err)
	require.NoError(t, NewSummaries(s).Each(t.Context(), manifest.KindPlaybook, func(encoded []byte) error {
		var rec manifest.Record
		require.NoError(t, json.Unmarshal(encoded, &rec))
		require.Equal(t, want.Status.Targets, rec.Status.Targets)
		require.Equal(t, &manifest.PlaybookStatus{RunID: "run-1"}, rec.Status.Playbook)
		return nil
	}))
}
