package state_test

import (
	"encoding/json"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/testsuite"
	"golang.org/x/sync/errgroup"

	"burrow.dev/burrow/activities/state"
	"burrow.dev/burrow/internal/config"
	"burrow.dev/burrow/internal/devstacktest"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/etcdstate"
	"burrow.dev/burrow/manifest"
)

// testRun is the run ID that the SDK's activity test environment gives.
const testRun = "default-test-run-id"

type desk struct {
	t     *testing.T
	a     *state.Activities
	store *etcdstate.Store
	env   *testsuite.TestActivityEnvironment
}

func newDesk(t *testing.T) desk {
	t.Helper()
	store, err := etcdstate.Open(config.Etcd{Endpoints: []string{devstacktest.Etcd(t)}}, etcdstate.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	a := state.New(store, nil)
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestActivityEnvironment()
	env.RegisterActivity(a)
	return desk{t, a, store, env}
}

// run calls an activity as a worker does; the SDK's error is unwrapped by its text only.
func (d desk) run(activity, in any) error {
	_, err := d.env.ExecuteActivity(activity, in)
	return err
}

func (d desk) get(name string) manifest.Record {
	rec, err := d.store.Get(d.t.Context(), manifest.KindServer, name)
	require.NoError(d.t, err)
	return rec
}

func operation(run string) manifest.Operation {
	return manifest.Operation{WorkflowID: "server/db", RunID: run, Type: "ProvisionServer", Since: time.Unix(1_700_000_000, 0).UTC()}
}

func build(run string) state.BeginIn {
	return state.BeginIn{
		Kind: manifest.KindServer, Metadata: manifest.Metadata{Name: "db"}, Spec: json.RawMessage(`{"cpu":2}`),
		Phase: manifest.PhaseProvisioning, Operation: operation(run), Bundle: "sha256:b", RequestedBy: "ann",
	}
}

func (d desk) begin(in state.BeginIn) (state.BeginOut, error) { return d.a.Begin(d.t.Context(), in) }

func TestBeginIsIdempotentForItsRunAndRefusesOthers(t *testing.T) {
	d := newDesk(t)
	first, err := d.begin(build(testRun))
	require.NoError(t, err)
	require.Equal(t, manifest.PhaseProvisioning, first.Record.Status.Phase)
	require.NotEmpty(t, first.Record.Metadata.UID)
	again, err := d.begin(build(testRun))
	require.NoError(t, err)
	require.Equal(t, first.Record, again.Record)

	foreign := build("other")
	foreign.Operation.WorkflowID = "server/db/next"
	_, err = d.begin(foreign)
	require.ErrorIs(t, err, errs.ErrBusy)
	require.Equal(t, errs.Permanent, errs.ClassOf(err))
	require.ErrorContains(t, err, "ProvisionServer")
	require.ErrorContains(t, err, "2023-11-14T22:13:20Z")
	require.ErrorContains(t, err, "burrow watch server/db")

	_, err = d.begin(build("a later run, whose predecessor was terminated"))
	require.ErrorIs(t, err, errs.ErrExists)
	require.ErrorContains(t, err, "burrow delete server/db")
}

func TestBeginOverAFailedRecordHasANewUID(t *testing.T) {
	d := newDesk(t)
	first, err := d.begin(build(testRun))
	require.NoError(t, err)
	uid := first.Record.Metadata.UID
	require.NoError(t, d.run(d.a.Fail, state.FailIn{Kind: manifest.KindServer, Name: "db", UID: uid, Message: "disk full"}))
	require.NoError(t, d.run(d.a.Fail, state.FailIn{Kind: manifest.KindServer, Name: "db", UID: uid, Message: "disk full"}), "again")
	rec := d.get("db")
	require.Equal(t, manifest.PhaseFailed, rec.Status.Phase)
	require.Equal(t, "disk full", rec.Status.Message)
	require.Nil(t, rec.Status.Operation)

	second, err := d.begin(build("second"))
	require.NoError(t, err)
	require.NotEqual(t, uid, second.Record.Metadata.UID)
	require.Equal(t, int64(2), second.Record.Metadata.Generation)
	require.Empty(t, second.Record.Status.Message, "no stale message")
	require.Error(t, d.run(d.a.Fail, state.FailIn{Kind: manifest.KindServer, Name: "db", UID: uid}), "a late retry of the old build")
}

func TestOneOfManyBuildsOfANameBegins(t *testing.T) {
	d := newDesk(t)
	var won atomic.Int64
	var group errgroup.Group
	for n := range 16 {
		in := build(fmt.Sprint(n))
		in.Operation.WorkflowID = fmt.Sprint(n)
		group.Go(func() error {
			if _, err := d.begin(in); err == nil {
				won.Add(1)
			}
			return nil
		})
	}
	require.NoError(t, group.Wait())
	require.Equal(t, int64(1), won.Load())
}

func TestFinishWritesTheStatusWholeAndOnlyForItsRun(t *testing.T) {
	d := newDesk(t)
	out, err := d.begin(build(testRun))
	require.NoError(t, err)
	uid := out.Record.Metadata.UID
	finish := state.FinishIn{Kind: manifest.KindServer, Name: "db", UID: uid, Status: manifest.Status{Phase: manifest.PhaseRunning, Host: "kvm1"}}
	require.NoError(t, d.run(d.a.Finish, finish))
	require.NoError(t, d.run(d.a.Finish, finish), "again")
	rec := d.get("db")
	require.Equal(t, manifest.Status{Phase: manifest.PhaseRunning, Host: "kvm1", ObservedGeneration: 1}, rec.Status)

	_, err = d.begin(build("again"))
	require.ErrorIs(t, err, errs.ErrExists)

	update := state.BeginIn{Kind: manifest.KindServer, Metadata: manifest.Metadata{Name: "db"}, Phase: manifest.PhaseUpdating, Operation: operation("another run")}
	changed, err := d.begin(update)
	require.NoError(t, err)
	require.Equal(t, "kvm1", changed.Record.Status.Host)
	require.JSONEq(t, `{"cpu":2}`, string(changed.Record.Spec))
	require.Error(t, d.run(d.a.Finish, finish), "a retry of the old run while another one works")
	require.Equal(t, manifest.PhaseUpdating, d.get("db").Status.Phase)

	require.Error(t, d.run(d.a.Finish, state.FinishIn{Kind: manifest.KindServer, Name: "db", UID: uid, Status: manifest.Status{Phase: manifest.PhaseHeld}}), "not settled")
}

func TestUpdateNeedsABuiltResource(t *testing.T) {
	d := newDesk(t)
	update := state.BeginIn{Kind: manifest.KindServer, Metadata: manifest.Metadata{Name: "db"}, Phase: manifest.PhaseUpdating, Operation: operation("u")}
	_, err := d.begin(update)
	require.ErrorIs(t, err, errs.ErrNotFound)
	require.Equal(t, errs.Permanent, errs.ClassOf(err))
	out, err := d.begin(build(testRun))
	require.NoError(t, err)
	require.NoError(t, d.run(d.a.Fail, state.FailIn{Kind: manifest.KindServer, Name: "db", UID: out.Record.Metadata.UID, Message: "x"}))
	_, err = d.begin(update)
	require.ErrorContains(t, err, "Failed")
}

func TestHoldKeepsWhatIsKnownAndItsEndClearsIt(t *testing.T) {
	d := newDesk(t)
	out, err := d.begin(build(testRun))
	require.NoError(t, err)
	uid := out.Record.Metadata.UID
	known := manifest.Status{Host: "kvm1", Addresses: []string{"10.0.0.2"}, Login: "debian"}
	require.NoError(t, d.run(d.a.Note, state.NoteIn{Kind: manifest.KindServer, Name: "db", UID: uid, Status: known}))
	rec := d.get("db")
	require.Equal(t, manifest.PhaseProvisioning, rec.Status.Phase)
	require.Equal(t, "kvm1", rec.Status.Host)
	require.Equal(t, "sha256:b", rec.Status.Bundle)
	require.Equal(t, testRun, rec.Status.Operation.RunID)

	hold := state.HoldIn{Kind: manifest.KindServer, Name: "db", UID: uid, Message: "task failed", Status: known}
	require.NoError(t, d.run(d.a.Hold, hold))
	rec = d.get("db")
	require.Equal(t, manifest.PhaseHeld, rec.Status.Phase)
	require.Equal(t, "task failed", rec.Status.Message)
	require.Equal(t, "debian", rec.Status.Login)
	require.Equal(t, testRun, rec.Status.Operation.RunID)
	require.Len(t, rec.Status.Conditions, 1)
	require.Equal(t, "NeedsAttention", rec.Status.Conditions[0].Type)

	hold.Message = ""
	require.NoError(t, d.run(d.a.Hold, hold))
	rec = d.get("db")
	require.Equal(t, manifest.PhaseProvisioning, rec.Status.Phase)
	require.Empty(t, rec.Status.Message)
	require.Empty(t, rec.Status.Conditions)
}

func TestAnAttemptThatWasGivenUpChangesNothingOfASettledRecord(t *testing.T) {
	d := newDesk(t)
	out, err := d.begin(build(testRun))
	require.NoError(t, err)
	uid := out.Record.Metadata.UID
	require.NoError(t, d.run(d.a.Finish, state.FinishIn{Kind: manifest.KindServer, Name: "db", UID: uid, Status: manifest.Status{Phase: manifest.PhaseRunning}}))
	settled := d.get("db")
	late := manifest.Status{Host: "kvm9", Operation: settled.Status.Operation}
	require.NoError(t, d.run(d.a.Hold, state.HoldIn{Kind: manifest.KindServer, Name: "db", UID: uid, Message: "task failed", Status: late}))
	require.NoError(t, d.run(d.a.Note, state.NoteIn{Kind: manifest.KindServer, Name: "db", UID: uid, Status: late}))
	require.Equal(t, settled, d.get("db"))
}

func TestDeleteOfNothingIsSuccessAndOfALeftOverRunTakesOver(t *testing.T) {
	d := newDesk(t)
	del := state.BeginIn{Kind: manifest.KindServer, Metadata: manifest.Metadata{Name: "db"}, Phase: manifest.PhaseDeleting, Operation: operation("delete")}
	out, err := d.begin(del)
	require.NoError(t, err)
	require.False(t, out.Found)

	built, err := d.begin(build("terminated from outside"))
	require.NoError(t, err)
	out, err = d.begin(del)
	require.NoError(t, err)
	require.True(t, out.Found)
	require.Equal(t, built.Record.Metadata.UID, out.Record.Metadata.UID)
	require.Equal(t, manifest.PhaseDeleting, d.get("db").Status.Phase)
	require.NoError(t, d.run(d.a.Remove, state.RemoveIn{Kind: manifest.KindServer, Name: "db", UID: "another"}))
	d.get("db")
	for range 2 {
		require.NoError(t, d.run(d.a.Remove, state.RemoveIn{Kind: manifest.KindServer, Name: "db", UID: out.Record.Metadata.UID}))
	}
	_, err = d.store.Get(t.Context(), manifest.KindServer, "db")
	require.ErrorIs(t, err, errs.ErrNotFound)
}

func TestAnOperationOnALostServerDoesNotCarryItsLossOn(t *testing.T) {
	d := newDesk(t)
	first, err := d.begin(build(testRun))
	require.NoError(t, err)
	_, err = d.store.Update(t.Context(), manifest.KindServer, "db", func(r *manifest.Record) error {
		r.Status = manifest.Status{Phase: manifest.PhaseRunning, Host: "kvm1", Message: "as it was"}
		r.Status.Lose(time.Unix(1_700_000_000, 0).UTC(), "host kvm1 does not answer")
		return nil
	})
	require.NoError(t, err)
	in := build(testRun)
	in.Phase = manifest.PhaseUpdating
	begun, err := d.begin(in)
	require.NoError(t, err)
	require.Nil(t, begun.Record.Status.Lost)
	require.Equal(t, "as it was", begun.Record.Status.Message, "what the operation writes at its end is made from this")
	require.Equal(t, first.Record.Metadata.UID, begun.Record.Metadata.UID)
}
