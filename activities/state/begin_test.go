package state_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"burrow.dev/burrow/activities/state"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
)

func TestWhatAServerIsToBecomeIsDecidedBeforeItsRecordIsTaken(t *testing.T) {
	d := newDesk(t)
	in := build(testRun)
	in.Spec = []byte(`{"cpu":1,"mmImage":"debian12"}`)
	out, err := d.begin(in)
	require.NoError(t, err)
	require.NoError(t, d.run(d.a.Finish, state.FinishIn{
		Kind: manifest.KindServer, Name: "db", UID: out.Record.Metadata.UID, Status: manifest.Status{Phase: manifest.PhaseRunning},
	}))
	before := d.get("db")
	update := state.BeginIn{Kind: manifest.KindServer, Metadata: manifest.Metadata{Name: "db"}, Phase: manifest.PhaseUpdating, Operation: operation("u")}
	become := func(spec string) *manifest.Declared {
		return &manifest.Declared{Kind: manifest.KindServer, Metadata: before.Metadata.Metadata, Spec: []byte(spec)}
	}

	update.Declared = become(`{"cpu":1,"mmImage":"debian13"}`)
	_, err = d.begin(update)
	require.ErrorIs(t, err, errs.ErrInvalid)
	require.Equal(t, errs.Permanent, errs.ClassOf(err))
	require.Equal(t, before, d.get("db"), "what is refused is not begun")

	update.Declared = become(`{"cpu":2,"mmImage":"debian12"}`)
	for range 2 {
		out, err = d.begin(update)
		require.NoError(t, err)
		require.True(t, out.Decision.Change.Machine)
		require.Equal(t, manifest.PhaseUpdating, d.get("db").Status.Phase)
	}
	looked, err := d.a.Look(t.Context(), state.LookIn{Kind: manifest.KindServer, Name: "db", Declared: become(string(before.Spec))})
	require.NoError(t, err)
	require.True(t, looked.Decision.Stands)
}

func TestAnOperationKnowsHowTheServerWasBeforeIt(t *testing.T) {
	d := newDesk(t)
	out, err := d.begin(build(testRun))
	require.NoError(t, err)
	uid := out.Record.Metadata.UID
	stopped := manifest.Status{Phase: manifest.PhaseStopped, Host: "kvm1"}
	require.NoError(t, d.run(d.a.Finish, state.FinishIn{Kind: manifest.KindServer, Name: "db", UID: uid, Status: stopped}))
	require.True(t, d.off())

	update := state.BeginIn{Kind: manifest.KindServer, Metadata: manifest.Metadata{Name: "db"}, Phase: manifest.PhaseUpdating, Operation: operation(testRun)}
	for _, when := range []string{"at first", "again"} {
		out, err = d.begin(update)
		require.NoError(t, err)
		require.True(t, out.Record.Status.Off(), when)
	}
	hold := state.HoldIn{Kind: manifest.KindServer, Name: "db", UID: uid, Message: "task failed", Status: stopped}
	mine := operation(testRun)
	hold.Status.Operation = &mine
	require.NoError(t, d.run(d.a.Hold, hold))
	require.True(t, d.off(), "held")

	settle := operation("settles")
	settle.Type = "SettleServer"
	adopted, err := d.a.Adopt(t.Context(), state.AdoptIn{Kind: manifest.KindServer, Name: "db", UID: uid, Operation: settle})
	require.NoError(t, err)
	require.True(t, adopted.Record.Status.Off(), "taken over when it was lost")
}

// off reads whether the record says that the server's guest is off.
func (d desk) off() bool {
	rec := d.get("db")
	return rec.Status.Off()
}
