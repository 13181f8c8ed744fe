package worker

import (
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/activities/sweep"
	"burrow.dev/burrow/internal/capacity"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
	"burrow.dev/burrow/workflows"
)

// lostIn are the activities after which a build may be interrupted: from before its host
// is noted in the record to the last.
var lostIn = []string{
	activities.ImageEnsure, activities.VolumeBuild, activities.NetworkEnsure, activities.SeedWrite,
	activities.DomainStart, activities.NetworkWire, activities.GuestWaitReady,
}

func TestABuildWhoseHistoryIsLostIsTakenBackAndCanBeAppliedAgain(t *testing.T) {
	w := newSweepWorld(t)
	w.network("a")
	before := w.census()
	for _, at := range lostIn {
		t.Run(at, func(t *testing.T) {
			defer w.as(t)()
			w.host.block(at)
			w.provision("db", nil)
			w.host.awaitReached(at)
			w.loseHistory()
			require.Equal(t, manifest.PhaseProvisioning, w.record(manifest.KindServer, "db").Status.Phase)

			out := w.sweep(workflows.SweepIn{})
			require.Len(t, out.Settled, 1, asJSON(t, out))
			require.True(t, out.Settled[0].Done, asJSON(t, out))
			rec := w.record(manifest.KindServer, "db")
			require.Equal(t, manifest.PhaseFailed, rec.Status.Phase)
			require.Contains(t, rec.Status.Message, "ProvisionServer was lost")
			require.Equal(t, append([]string{"servers/db"}, before...), sortedWith(w.census()))

			require.NoError(t, w.provision("db", nil).Get(t.Context(), nil))
			require.True(t, w.sweep(workflows.SweepIn{}).Clean())
			require.NoError(t, w.run("server/db", workflows.NameDeleteServer, workflows.DeleteIn{Name: "db"}).Get(t.Context(), nil))
			require.Equal(t, before, w.census())
		})
	}
}

// sortedWith puts the server's record, which sorts late, first.
func sortedWith(all []string) []string {
	for i, key := range all {
		if key == "servers/db" {
			return append([]string{key}, append(append([]string{}, all[:i]...), all[i+1:]...)...)
		}
	}
	return all
}

func TestADeleteWhoseHistoryIsLostGoesToItsEnd(t *testing.T) {
	w := newSweepWorld(t)
	w.network("a")
	before := w.census()
	for _, at := range []string{activities.AnsibleReap, activities.DomainRemove, activities.SeedRemove, activities.NetworkRelease} {
		t.Run(at, func(t *testing.T) {
			defer w.as(t)()
			require.NoError(t, w.provision("db", nil).Get(t.Context(), nil))
			w.host.block(at)
			w.run("server/db", workflows.NameDeleteServer, workflows.DeleteIn{Name: "db"})
			w.host.awaitReached(at)
			w.loseHistory()
			out := w.sweep(workflows.SweepIn{})
			require.Len(t, out.Settled, 1, asJSON(t, out))
			require.True(t, out.Settled[0].Done, asJSON(t, out))
			require.Equal(t, before, w.census())
		})
	}
}

func TestAServerThatWasRunningIsSettledAsItsGuestIs(t *testing.T) {
	w := newSweepWorld(t)
	w.network("a")
	require.NoError(t, w.provision("other", nil).Get(t.Context(), nil))
	require.NoError(t, w.provision("db", nil).Get(t.Context(), nil))
	uid := w.record(manifest.KindServer, "db").Metadata.UID
	for _, c := range []struct {
		name, at string
		action   workflows.PowerAction
		phase    manifest.Phase
		guest    string
	}{
		{"off already", activities.DomainShutdown, workflows.PowerStop, manifest.PhaseStopped, "shutoff"},
		{"started and not wired", activities.DomainStart, workflows.PowerStart, manifest.PhaseRunning, "running"},
		{"off on the way to a restart", activities.NetworkUnwire, workflows.PowerRestart, manifest.PhaseStopped, "shutoff"},
		{"running already", activities.DomainResume, workflows.PowerStart, manifest.PhaseRunning, "running"},
	} {
		t.Run(c.name, func(t *testing.T) {
			defer w.as(t)()
			w.host.block(c.at)
			w.run("server/db", workflows.NamePowerServer, workflows.PowerServerIn{Name: "db", Action: c.action})
			w.host.awaitReached(c.at)
			w.loseHistory()
			require.Equal(t, manifest.PhaseUpdating, w.record(manifest.KindServer, "db").Status.Phase)
			out := w.sweep(workflows.SweepIn{})
			require.True(t, out.Settled[0].Done, asJSON(t, out))
			rec := w.record(manifest.KindServer, "db")
			require.Equal(t, c.phase, rec.Status.Phase)
			require.Nil(t, rec.Status.Operation)
			require.Equal(t, uid, rec.Metadata.UID)
			state, _ := w.host.get("domain/" + uid)
			require.Equal(t, c.guest, state)
			_, wired := w.host.get("port/" + uid)
			require.Equal(t, c.guest == "running", wired)
			require.True(t, w.sweep(workflows.SweepIn{}).Clean())
		})
	}
	other := w.record(manifest.KindServer, "other")
	require.Equal(t, manifest.PhaseRunning, other.Status.Phase)
	state, _ := w.host.get("domain/" + other.Metadata.UID)
	require.Equal(t, "running", state)
}

func TestAHeldServerWhoseHistoryIsLostIsKeptAndSaysWhatToDo(t *testing.T) {
	w := newSweepWorld(t)
	w.network("a")
	w.host.fails = map[string]error{activities.GuestWaitReady: errs.NewOperator("server/db", "wait until ready", errs.Reason("no login"), "look at it")}
	w.provision("db", func(s *manifest.ServerSpec) { s.OnFailure = manifest.OnFailureHold })
	uid := w.awaitPhase("db", manifest.PhaseHeld).Metadata.UID
	w.loseHistory()
	out := w.sweep(workflows.SweepIn{})
	require.True(t, out.Settled[0].Done, asJSON(t, out))
	rec := w.record(manifest.KindServer, "db")
	require.Equal(t, manifest.PhaseRunning, rec.Status.Phase)
	require.Contains(t, conditionOf(rec, manifest.ConditionUnfinished).Message, "no login")
	require.Contains(t, conditionOf(rec, manifest.ConditionUnfinished).Message, "burrow delete server/db")
	state, _ := w.host.get("domain/" + uid)
	require.Equal(t, "running", state)
	require.True(t, w.sweep(workflows.SweepIn{}).Clean())
}

func TestAServerHeldBeforeItHadAGuestIsTakenBack(t *testing.T) {
	w := newSweepWorld(t)
	w.network("a")
	before := w.census()
	w.host.fails = map[string]error{activities.VolumeBuild: errs.NewOperator("server/db", "build volumes", errs.Reason("disk full"), "make room")}
	w.provision("db", func(s *manifest.ServerSpec) { s.OnFailure = manifest.OnFailureHold })
	w.awaitPhase("db", manifest.PhaseHeld)
	w.loseHistory()
	w.sweep(workflows.SweepIn{})
	require.Equal(t, manifest.PhaseFailed, w.record(manifest.KindServer, "db").Status.Phase)
	require.Equal(t, append([]string{"servers/db"}, before...), sortedWith(w.census()))
}

func TestASettlementThatIsLostItselfIsTakenUpWithWhatItKnew(t *testing.T) {
	w := newSweepWorld(t)
	w.network("a")
	before := w.census()
	w.host.block(activities.GuestWaitReady)
	w.provision("db", nil)
	w.host.awaitReached(activities.GuestWaitReady)
	w.loseHistory()
	w.host.block(activities.SeedRemove)
	w.run(workflows.IDSweep, workflows.NameSweep, workflows.SweepIn{})
	w.host.awaitReached(activities.SeedRemove)
	w.loseHistory()
	out := w.sweep(workflows.SweepIn{})
	require.True(t, out.Settled[0].Done, asJSON(t, out))
	rec := w.record(manifest.KindServer, "db")
	require.Equal(t, manifest.PhaseFailed, rec.Status.Phase)
	require.Contains(t, rec.Status.Message, "ProvisionServer was lost")
	require.Equal(t, append([]string{"servers/db"}, before...), sortedWith(w.census()))
}

// TestAServerThatWasBuiltIsNeverTakenBack: its record may say Held, or Provisioning, for an
// operation that came after its build, and its guest may be gone.
func TestAServerThatWasBuiltIsNeverTakenBack(t *testing.T) {
	w := newSweepWorld(t)
	w.network("a")
	require.NoError(t, w.provision("db", nil).Get(t.Context(), nil))
	uid := w.record(manifest.KindServer, "db").Metadata.UID
	for _, phase := range []manifest.Phase{manifest.PhaseHeld, manifest.PhaseProvisioning} {
		_, err := w.store.Update(t.Context(), manifest.KindServer, "db", func(r *manifest.Record) error {
			r.Status.Phase = phase
			r.Status.Operation = &manifest.Operation{WorkflowID: "server/db", RunID: "gone", Type: workflows.NameConfigureServer}
			return nil
		})
		require.NoError(t, err)
		w.host.set("domain/"+uid, "")
		out := w.sweep(workflows.SweepIn{})
		require.True(t, out.Settled[0].Done, asJSON(t, out))
		require.Equal(t, manifest.PhaseStopped, w.record(manifest.KindServer, "db").Status.Phase)
		_, disk := w.host.get("volume/" + uid)
		require.True(t, disk, "its disk stays")
	}
}

func TestVolumesAndNetworksWhoseHistoryIsLostAreSettled(t *testing.T) {
	w := newSweepWorld(t)
	before := w.census()
	create := workflows.CreateVolumeIn{Metadata: manifest.Metadata{Name: "data"}, Spec: manifest.VolumeSpec{Size: 1, Type: "qcow2"}}
	w.host.block(activities.VolumeCreate)
	w.run("volume/data", workflows.NameCreateVolume, create)
	w.host.awaitReached(activities.VolumeCreate)
	w.loseHistory()
	require.True(t, w.sweep(workflows.SweepIn{}).Settled[0].Done)
	require.Equal(t, manifest.PhaseFailed, w.record(manifest.KindVolume, "data").Status.Phase)
	require.Equal(t, append(before, "volumes/data"), w.census())

	require.NoError(t, w.run("volume/data", workflows.NameCreateVolume, create).Get(t.Context(), nil))
	w.host.block(activities.VolumeDelete)
	w.run("volume/data", workflows.NameDeleteVolume, workflows.DeleteIn{Name: "data"})
	w.host.awaitReached(activities.VolumeDelete)
	w.loseHistory()
	require.True(t, w.sweep(workflows.SweepIn{}).Settled[0].Done)
	require.Equal(t, before, w.census())

	_, err := w.store.Create(t.Context(), manifest.Record{
		Kind: manifest.KindNetwork, Metadata: manifest.RecordMeta{Metadata: manifest.Metadata{Name: "n"}, UID: uuid.NewString()},
		Status: manifest.Status{Phase: manifest.PhaseProvisioning, Operation: &manifest.Operation{WorkflowID: "network/n", RunID: "gone", Type: workflows.NameCreateNetwork}},
	})
	require.NoError(t, err)
	require.True(t, w.sweep(workflows.SweepIn{}).Settled[0].Done)
	require.Equal(t, manifest.PhaseFailed, w.record(manifest.KindNetwork, "n").Status.Phase)
}

func TestWhatNobodyOwnsIsReportedAtTheFirstSightAndReleasedAtTheSecond(t *testing.T) {
	w := newSweepWorld(t)
	w.network("a")
	require.NoError(t, w.provision("db", nil).Get(t.Context(), nil))
	before := w.census()
	ctx, uid := t.Context(), uuid.NewString()
	lost := activities.Server{Name: "lost", UID: uid}
	net := w.record(manifest.KindNetwork, "a").Metadata.UID
	w.leave(lost, net)
	require.NoError(t, w.store.AddReference(ctx, net, "kvm-gone", uid))
	require.NoError(t, w.store.Claim(ctx, "playbook/gone", "server/db"))

	drift := w.drift()
	require.Len(t, drift.Findings, 6, asJSON(t, drift))
	first := drift.Findings[0].Since
	require.WithinDuration(t, time.Now(), first, time.Minute)

	early := w.sweep(workflows.SweepIn{GraceSeconds: 3600})
	require.Len(t, early.Findings, 6)
	for _, f := range early.Findings {
		require.Equal(t, sweep.VerdictWait, f.Verdict, asJSON(t, f))
		require.Equal(t, first.Truncate(time.Second), f.Since.Truncate(time.Second))
	}
	late := w.sweep(workflows.SweepIn{})
	for _, f := range late.Findings {
		require.Equal(t, sweep.VerdictMended, f.Verdict, asJSON(t, f))
	}
	require.Len(t, late.Findings, 6)
	require.Equal(t, before, w.census())
	require.True(t, w.sweep(workflows.SweepIn{}).Clean())
	require.Equal(t, manifest.PhaseRunning, w.record(manifest.KindServer, "db").Status.Phase)
}

// leave puts into etcd what a server has there, for one that has no record.
func (w *sweepWorld) leave(s activities.Server, networkUID string) {
	t, ctx := w.t, w.t.Context()
	t.Helper()
	_, err := w.pool.Allocate(ctx, networkUID, wantsFor(s))
	require.NoError(t, err)
	_, err = w.store.OwnOne(ctx, "macs", s.UID+"/a-0", "52:54:00:00:00:01")
	require.NoError(t, err)
	_, err = w.store.Reserve(ctx, s.UID, capacity.Reservation{Owner: s.Ref(), CPU: 1}, func([]capacity.Host) (string, error) { return "kvm1", nil })
	require.NoError(t, err)
	require.NoError(t, w.secrets.Put(ctx, "server-keys/"+s.UID, []byte("x")))
}

// TestSweepsNeverTouchWhatAnOperationHasJustBegun sweeps without any grace, again and
// again, while servers are built and deleted.
func TestSweepsNeverTouchWhatAnOperationHasJustBegun(t *testing.T) {
	w := newSweepWorld(t)
	w.network("a")
	before := w.census()
	done := make(chan struct{})
	var sweeps sync.WaitGroup
	sweeps.Add(1)
	rounds := 0
	go func() {
		defer sweeps.Done()
		for {
			select {
			case <-done:
				return
			default:
			}
			run, err := w.client.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: workflows.IDSweep, TaskQueue: activities.ControlQueue}, workflows.NameSweep, workflows.SweepIn{})
			var out workflows.SweepOut
			if err == nil {
				err = run.Get(t.Context(), &out)
			}
			for _, f := range out.Findings {
				if f.Verdict == sweep.VerdictMended {
					t.Errorf("removed: %+v", f)
				}
			}
			if err != nil || len(out.Settled) > 0 {
				t.Errorf("settled %v, error %v", out.Settled, err)
				return
			}
			rounds++
		}
	}()
	for range 3 {
		var builds []client.WorkflowRun
		names := []string{"s1", "s2", "s3", "s4", "s5", "s6"}
		for _, name := range names {
			builds = append(builds, w.provision(name, nil))
		}
		for _, b := range builds {
			require.NoError(t, b.Get(t.Context(), nil))
		}
		for i, name := range names {
			rec := w.record(manifest.KindServer, name)
			require.Equal(t, manifest.PhaseRunning, rec.Status.Phase)
			_, err := w.secrets.Get(t.Context(), "server-keys/"+rec.Metadata.UID)
			require.NoError(t, err)
			builds[i] = w.run("server/"+name, workflows.NameDeleteServer, workflows.DeleteIn{Name: name})
		}
		for _, b := range builds {
			require.NoError(t, b.Get(t.Context(), nil))
		}
	}
	close(done)
	sweeps.Wait()
	require.Greater(t, rounds, 3)
	require.Equal(t, before, w.census())
}

func TestAHostThatIsAwayIsSaidAndNotWaitedFor(t *testing.T) {
	w := newSweepWorld(t)
	require.NoError(t, w.store.RegisterHost(t.Context(), "kvm2", nil, capacity.Spec{CPU: 1}))
	_, err := w.store.Create(t.Context(), manifest.Record{
		Kind: manifest.KindServer, Metadata: manifest.RecordMeta{Metadata: manifest.Metadata{Name: "db"}, UID: uuid.NewString()}, Spec: []byte("{}"),
		Status: manifest.Status{Phase: manifest.PhaseUpdating, Host: "kvm2", Operation: &manifest.Operation{WorkflowID: "server/db", RunID: "gone", Type: workflows.NamePowerServer}},
	})
	require.NoError(t, err)
	out := w.sweep(workflows.SweepIn{})
	require.Equal(t, []workflows.Away{{Host: "kvm2", Why: "its worker does not answer"}}, out.Away)
	require.False(t, out.Settled[0].Done)
	require.Contains(t, out.Settled[0].What, "kvm2")
	require.Equal(t, manifest.PhaseUpdating, w.record(manifest.KindServer, "db").Status.Phase)
}

func TestSchedulesAreMadeOnceAndStartTheSweepThatAnybodyMayStart(t *testing.T) {
	w := newSweepWorld(t)
	for range 2 {
		for _, s := range schedules() {
			require.NoError(t, ensureSchedule(t.Context(), w.client, s))
		}
	}
	handle := w.client.ScheduleClient().GetHandle(t.Context(), workflows.IDSweep)
	require.NoError(t, handle.Trigger(t.Context(), client.ScheduleTriggerOptions{}))
	require.Eventually(t, func() bool {
		d, err := w.client.DescribeWorkflow(t.Context(), workflows.IDSweep, "")
		return err == nil && d.Status.String() == "Completed"
	}, patience, 50*time.Millisecond)
}

func TestAScheduleOfAnotherVersionGetsTheActionOfThisOne(t *testing.T) {
	w := newSweepWorld(t)
	s := schedules()[0]
	handle := w.client.ScheduleClient().GetHandle(t.Context(), s.id)
	workflow := func() (string, int64) {
		d, err := handle.Describe(t.Context())
		require.NoError(t, err)
		return d.Schedule.Action.(*client.ScheduleWorkflowAction).Workflow.(string), d.Info.LastUpdateAt.UnixNano()
	}
	require.NoError(t, ensureSchedule(t.Context(), w.client, s))
	require.NoError(t, handle.Update(t.Context(), client.ScheduleUpdateOptions{
		DoUpdate: func(in client.ScheduleUpdateInput) (*client.ScheduleUpdate, error) {
			action := in.Description.Schedule.Action.(*client.ScheduleWorkflowAction)
			action.Workflow, action.Memo = "Older", nil
			return &client.ScheduleUpdate{Schedule: &in.Description.Schedule}, nil
		},
	}))
	require.NoError(t, ensureSchedule(t.Context(), w.client, s))
	name, updated := workflow()
	require.Equal(t, workflows.NameScheduled, name)
	require.NoError(t, ensureSchedule(t.Context(), w.client, s))
	_, again := workflow()
	require.Equal(t, updated, again, "what is as it is to be is left alone")
}

func TestWhatARecordSaysAndEtcdDoesNotHoldIsNotedAndLeftAlone(t *testing.T) {
	w := newSweepWorld(t)
	w.network("a")
	require.NoError(t, w.provision("db", nil).Get(t.Context(), nil))
	rec := w.record(manifest.KindServer, "db")
	require.NoError(t, w.pool.Release(t.Context(), rec.Status.Ports[0].NetworkUID, rec.Metadata.UID+"/"))
	require.NoError(t, w.store.Unreserve(t.Context(), rec.Metadata.UID))
	before := w.census()
	for range 2 {
		out := w.sweep(workflows.SweepIn{})
		require.Len(t, out.Findings, 2, asJSON(t, out))
		for _, f := range out.Findings {
			require.Equal(t, sweep.VerdictNote, f.Verdict)
			require.Equal(t, "server/db", f.Ref)
			require.NotEmpty(t, f.Next)
		}
	}
	require.Equal(t, before, w.census())
	require.Equal(t, rec, w.record(manifest.KindServer, "db"))
}

func TestARecordThatCannotBeReadIsNamedAndNothingThatMayBeItsIsRemoved(t *testing.T) {
	w := newSweepWorld(t)
	w.network("a")
	require.NoError(t, w.provision("bad", nil).Get(t.Context(), nil))
	key := w.store.Key("servers", "bad")
	etcd := w.store.Client()
	good, err := etcd.Get(t.Context(), key)
	require.NoError(t, err)
	before := w.census()
	_, err = etcd.Put(t.Context(), key, "{")
	require.NoError(t, err)

	out := w.drift()
	var named []sweep.Finding
	for _, f := range out.Findings {
		if f.Ref == "server/bad" && f.Verdict == sweep.VerdictNote {
			named = append(named, f)
		}
	}
	require.Len(t, named, 1, asJSON(t, out))
	require.Contains(t, named[0].Problem, "cannot be read")
	require.Contains(t, named[0].Next, "burrow restore")
	for range 3 {
		out = w.sweep(workflows.SweepIn{GraceSeconds: 0})
		for _, f := range out.Findings {
			require.NotEqual(t, sweep.VerdictMended, f.Verdict, asJSON(t, f))
			if f.Verdict == sweep.VerdictWait {
				require.Contains(t, f.Next, "server/bad")
			}
		}
	}
	require.Equal(t, before, w.census(), "its own are all there")

	t.Run("others are built, deleted and finished meanwhile", func(t *testing.T) {
		defer w.as(t)()
		require.NoError(t, w.provision("db", nil).Get(t.Context(), nil))
		w.host.block(activities.DomainRemove)
		w.run("server/db", workflows.NameDeleteServer, workflows.DeleteIn{Name: "db"})
		w.host.awaitReached(activities.DomainRemove)
		w.loseHistory()
		out := w.sweep(workflows.SweepIn{})
		require.Len(t, out.Settled, 1, asJSON(t, out))
		require.True(t, out.Settled[0].Done, asJSON(t, out))
		require.Equal(t, before, w.census())
	})

	_, err = etcd.Put(t.Context(), key, string(good.Kvs[0].Value))
	require.NoError(t, err)
	require.True(t, w.sweep(workflows.SweepIn{}).Clean())
	require.NoError(t, w.run("server/bad", workflows.NameDeleteServer, workflows.DeleteIn{Name: "bad"}).Get(t.Context(), nil))
}
