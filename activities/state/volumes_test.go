package state_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/activities/state"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
)

func (d desk) volume(name string, phase manifest.Phase) {
	_, err := d.store.Create(d.t.Context(), manifest.Record{
		Kind: manifest.KindVolume, Metadata: manifest.RecordMeta{Metadata: manifest.Metadata{Name: name}, UID: "uid-" + name},
		Status: manifest.Status{Phase: phase, Volume: &manifest.VolumeStatus{Path: "/pool/" + name}},
	})
	require.NoError(d.t, err)
}

func TestVolumesAreAttachedAllOrNoneAndToOneServer(t *testing.T) {
	d := newDesk(t)
	d.volume("data-1", manifest.PhaseReady)
	d.volume("data-2", manifest.PhaseReady)
	one, two := activities.Server{Name: "db", UID: "1"}, activities.Server{Name: "web", UID: "2"}
	attached := func(name string) string {
		rec, err := d.store.Get(t.Context(), manifest.KindVolume, name)
		require.NoError(t, err)
		return rec.Status.Volume.AttachedUID
	}
	for range 2 {
		out, err := d.a.AttachVolumes(t.Context(), state.VolumesIn{Server: one, Names: []string{"data-1"}})
		require.NoError(t, err)
		require.Equal(t, "server/db", out.Records[0].Status.Volume.AttachedTo)
	}
	_, err := d.a.AttachVolumes(t.Context(), state.VolumesIn{Server: two, Names: []string{"data-2", "data-1"}})
	require.ErrorIs(t, err, errs.ErrBusy)
	require.ErrorContains(t, err, "server/db")
	require.Empty(t, attached("data-2"), "all or none")
	_, err = d.a.AttachVolumes(t.Context(), state.VolumesIn{Server: two, Names: []string{"data-2", "absent"}})
	require.ErrorIs(t, err, errs.ErrNotFound)
	require.ErrorContains(t, err, "volume/absent")
	_, err = d.a.DetachVolumes(t.Context(), state.VolumesIn{Server: two, Names: []string{"data-1", "absent"}})
	require.NoError(t, err)
	require.Equal(t, "1", attached("data-1"), "another server's detach changes nothing")

	del := state.BeginIn{Kind: manifest.KindVolume, Metadata: manifest.Metadata{Name: "data-1"}, Phase: manifest.PhaseDeleting, Operation: operation("d")}
	_, err = d.begin(del)
	require.ErrorIs(t, err, errs.ErrBusy)
	require.ErrorContains(t, err, "attached to server/db; `burrow delete server/db` first; that keeps the volume's data")
	_, err = d.a.DetachVolumes(t.Context(), state.VolumesIn{Server: two, All: true})
	require.NoError(t, err)
	require.Equal(t, "1", attached("data-1"), "another server's delete changes nothing")
	freed, err := d.a.DetachVolumes(t.Context(), state.VolumesIn{Server: activities.Server{Name: "absent"}, All: true})
	require.NoError(t, err)
	require.Empty(t, freed.Records, "what nobody has is not touched by the delete of a server that is not there")
	for range 2 {
		_, err = d.a.DetachVolumes(t.Context(), state.VolumesIn{Server: one, Names: []string{"data-1"}})
		require.NoError(t, err)
	}
	_, err = d.a.AttachVolumes(t.Context(), state.VolumesIn{Server: one, Names: []string{"data-1"}})
	require.NoError(t, err)
	_, err = d.a.DetachVolumes(t.Context(), state.VolumesIn{Server: one, All: true})
	require.NoError(t, err)
	require.Empty(t, attached("data-1"), "its own delete frees what its spec does not name any more")
	_, err = d.begin(del)
	require.NoError(t, err)
	_, err = d.a.AttachVolumes(t.Context(), state.VolumesIn{Server: two, Names: []string{"data-1"}})
	require.ErrorIs(t, err, errs.ErrBusy, "it is being deleted")
}
