package etcdstate

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"burrow.dev/burrow/internal/capacity"
	"burrow.dev/burrow/manifest"
)

func TestARecordThatCannotBeReadIsListedAsDamagedAndKeepsNoOtherFromIt(t *testing.T) {
	s := newTestStore(t)
	for _, name := range []string{"a", "z"} {
		_, err := s.Create(t.Context(), server(name, "uid-"+name))
		require.NoError(t, err)
	}
	for _, value := range []string{"{", `{"kind":"Server","metadata":{"name":"other","uid":"uid-a"}}`} {
		_, err := s.client.Put(t.Context(), s.Key("servers", "m"), value)
		require.NoError(t, err)
		all, err := s.List(t.Context(), manifest.KindServer)
		require.NoError(t, err)
		var short []manifest.Record
		require.NoError(t, NewSummaries(s).Each(t.Context(), manifest.KindServer, func(encoded []byte) error {
			var rec manifest.Record
			require.NoError(t, json.Unmarshal(encoded, &rec))
			short = append(short, rec)
			return nil
		}))
		for _, recs := range [][]manifest.Record{all, short} {
			require.Len(t, recs, 3)
			bad := recs[1]
			require.Equal(t, "m", bad.Metadata.Name)
			require.Equal(t, manifest.KindServer, bad.Kind)
			require.Equal(t, manifest.PhaseDamaged, bad.Status.Phase)
			require.Empty(t, bad.Metadata.UID, "nothing of it is believed")
			require.Contains(t, bad.Status.Message, s.Key("servers", "m"))
			require.Contains(t, bad.Status.Message, "restore it from a backup")
			require.Equal(t, "uid-z", recs[2].Metadata.UID)
			_, err = encodeRecord(bad)
			require.ErrorContains(t, err, "damaged", "what stands for it is never written over it")
		}
	}
}

func TestAHostWhoseRecordCannotBeReadKeepsNoOtherFromItsWork(t *testing.T) {
	s := newTestStore(t)
	require.NoError(t, s.RegisterHost(t.Context(), "good", nil, capacity.Spec{}))
	_, err := s.client.Put(t.Context(), s.Key("hosts", "bad"), "{")
	require.NoError(t, err)
	hosts, err := s.List(t.Context(), manifest.KindHost)
	require.NoError(t, err)
	require.Equal(t, manifest.PhaseDamaged, hosts[0].Status.Phase)
	room, err := s.readRoom(t.Context(), "uid")
	require.NoError(t, err)
	require.Len(t, room.hosts, 1)
	require.Equal(t, "good", room.hosts[0].Name)
}
