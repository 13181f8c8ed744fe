package workflows

import (
	"context"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/activities/domain"
	"burrow.dev/burrow/activities/state"
	"burrow.dev/burrow/activities/sweep"
	"burrow.dev/burrow/internal/devstacktest"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
)

// lostWorld is a world in which one record's operation is gone, and two things belong to
// nobody: a domain on its host and an address in etcd.
func lostWorld(t *testing.T, phase manifest.Phase, guest domain.LookOut) *world {
	w := newWorld(t)
	w.record.Host = "kvm1"
	answer(w, activities.SweepUnfinished, func(sweep.UnfinishedIn) sweep.UnfinishedOut {
		return sweep.UnfinishedOut{Alive: []string{"kvm1"}, Away: []string{"kvm2"}, Records: []sweep.Unfinished{
			{Kind: manifest.KindServer, Name: "db", UID: "uid-1", Phase: phase, Host: "kvm1", Was: manifest.Operation{Type: NameProvisionServer}},
			{Kind: manifest.KindServer, Name: "far", UID: "uid-2", Phase: phase, Host: "kvm2", Was: manifest.Operation{Type: NameProvisionServer}},
		}}
	})
	answer(w, activities.StateAdopt, func(in state.AdoptIn) state.AdoptOut {
		return state.AdoptOut{
			Found: true, Was: manifest.Operation{Type: NameProvisionServer},
			Record: manifest.Record{
				Kind: in.Kind, Spec: []byte(`{}`), Metadata: manifest.RecordMeta{Metadata: manifest.Metadata{Name: in.Name}, UID: in.UID},
				Status: manifest.Status{Phase: phase, Host: "kvm1", Message: "a task failed"},
			},
		}
	})
	answer(w, activities.DomainLook, func(domain.LookIn) domain.LookOut { return guest })
	answer(w, activities.SweepLookHost, func(sweep.LookIn) sweep.LookOut {
		return sweep.LookOut{Findings: []sweep.Finding{{ID: "kvm1/domain/x", Thing: sweep.ThingDomain, UID: "x", Host: "kvm1", OnHost: true}}}
	})
	answer(w, activities.SweepLookState, func(sweep.LookIn) sweep.LookOut {
		return sweep.LookOut{Findings: []sweep.Finding{{ID: "address/n/x", Thing: sweep.ThingAddress, UID: "x"}}}
	})
	answer(w, activities.SweepJudge, func(in sweep.JudgeIn) sweep.JudgeOut {
		for i := range in.Findings {
			in.Findings[i].Verdict = sweep.VerdictRemove
		}
		return sweep.JudgeOut{Findings: in.Findings}
	})
	clear := func(in sweep.ClearIn) sweep.ClearOut {
		for i := range in.Findings {
			in.Findings[i].Verdict = sweep.VerdictMended
		}
		return sweep.ClearOut(in)
	}
	answer(w, activities.SweepClearHost, clear)
	answer(w, activities.SweepClearState, clear)
	return w
}

// TestScenariosOfSweepOnRealTemporal runs sweeps on a real server and replays what they and
// the operations that they started recorded; with -record it also writes the histories.
func TestScenariosOfSweepOnRealTemporal(t *testing.T) {
	stack := devstacktest.Stack(t)
	for _, sc := range []struct {
		name     string
		workflow string
		phase    manifest.Phase
		guest    domain.LookOut
		calls    []string // of the settling, in order; others may be between
		final    manifest.Phase
	}{
		{
			"undo", NameSweep, manifest.PhaseProvisioning,
			domain.LookOut{Found: true, State: "running"},
			[]string{activities.StateAdopt, activities.DomainLook, activities.AnsibleReap, activities.DomainRemove, activities.NetworkUnwire, activities.PlaceRelease, activities.StateFail},
			"",
		},
		{"delete", NameSweep, manifest.PhaseDeleting, domain.LookOut{}, []string{activities.StateBegin, activities.DomainRemove, activities.StateRemove}, ""},
		{"running", NameSweep, manifest.PhaseUpdating, domain.LookOut{Found: true, State: "running"}, []string{activities.DomainLook, activities.StateFinish}, manifest.PhaseRunning},
		{"off", NameSweep, manifest.PhaseUpdating, domain.LookOut{Found: true, State: "shutoff"}, []string{activities.NetworkUnwire, activities.StateFinish}, manifest.PhaseStopped},
		{
			"paused", NameSweep, manifest.PhaseUpdating,
			domain.LookOut{Found: true, State: "paused", Reason: "user"},
			[]string{activities.NetworkEnsure, activities.DomainStart, activities.NetworkWire, activities.DomainResume, activities.StateFinish},
			manifest.PhaseRunning,
		},
		{"io-error", NameSweep, manifest.PhaseUpdating, domain.LookOut{Found: true, State: "paused", Reason: "ioerror"}, []string{activities.DomainLook, activities.StateFinish}, manifest.PhaseRunning},
		{"held", NameSweep, manifest.PhaseHeld, domain.LookOut{Found: true, State: "running"}, []string{activities.DomainLook, activities.StateFinish}, manifest.PhaseRunning},
		{"drift", NameDrift, manifest.PhaseHeld, domain.LookOut{}, []string{activities.SweepUnfinished, activities.SweepLookHost, activities.SweepLookState, activities.SweepJudge}, ""},
		{"scheduled", NameScheduled, manifest.PhaseUpdating, domain.LookOut{Found: true, State: "running"}, []string{activities.SweepUnfinished, activities.SweepClearHost, activities.SweepClearState}, manifest.PhaseRunning},
	} {
		t.Run(sc.name, func(t *testing.T) {
			w := lostWorld(t, sc.phase, sc.guest)
			runWorker(t, stack.Client, w)
			id, in := map[string]string{NameSweep: IDSweep, NameDrift: IDDrift, NameScheduled: "scheduled-sweep"}[sc.workflow], any(SweepIn{})
			if sc.workflow == NameScheduled {
				in = ScheduledIn{Workflow: NameSweep}
			}
			run, err := stack.Client.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: id, TaskQueue: activities.ControlQueue}, sc.workflow, in)
			require.NoError(t, err)
			var out SweepOut
			if sc.workflow == NameScheduled {
				require.NoError(t, run.Get(t.Context(), nil))
				require.NoError(t, stack.Client.GetWorkflow(t.Context(), IDSweep, "").Get(t.Context(), &out))
			} else {
				require.NoError(t, run.Get(t.Context(), &out))
			}
			require.Equal(t, []Away{{Host: "kvm2", Why: "its worker does not answer"}}, out.Away)
			require.Len(t, out.Settled, 2)
			require.Equal(t, sc.workflow != NameDrift, out.Settled[0].Done)
			require.False(t, out.Settled[1].Done, "its host is away")
			requireOrder(t, sc.calls, w.calls())
			if sc.workflow == NameDrift {
				require.NotContains(t, w.calls(), activities.SweepClearHost)
				require.NotContains(t, w.calls(), activities.StateAdopt)
			} else {
				requireOrder(t, []string{activities.SweepClearHost, activities.SweepClearState}, w.calls())
			}
			if sc.final != "" {
				require.Equal(t, sc.final, w.last[activities.StateFinish].(state.FinishIn).Status.Phase)
				require.NotContains(t, w.calls(), activities.DomainRemove, "what was Running is never destroyed")
				require.NotContains(t, w.calls(), activities.VolumeRemove)
			}
			ids := []string{id}
			if sc.workflow != NameDrift {
				ids = append(ids, "server/db")
			}
			for _, of := range ids {
				h := historyOf(t, stack.Client, of)
				require.NotEmpty(t, h.GetEvents())
				require.NoError(t, replayer().ReplayWorkflowHistory(nil, h))
				if *recordAs != "" {
					write(t, filepath.Join(histories, *recordAs+"sweep-"+sc.name+"-"+filepath.Base(of)+".json"), h)
				}
			}
		})
	}
}

// requireOrder checks that calls came in an order, whatever came between.
func requireOrder(t *testing.T, want, calls []string) {
	t.Helper()
	rest := calls
	for _, name := range want {
		i := slices.Index(rest, name)
		require.GreaterOrEqual(t, i, 0, "%s in %v", name, calls)
		rest = rest[i+1:]
	}
}

// historyOf reads the latest run's history.
func historyOf(t *testing.T, c client.Client, id string) *historypb.History {
	t.Helper()
	h := &historypb.History{}
	for it := c.GetWorkflowHistory(context.Background(), id, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT); it.HasNext(); {
		e, err := it.Next()
		require.NoError(t, err)
		h.Events = append(h.Events, e)
	}
	return h
}

func TestASweepDoesNotWaitForAHostThatDoesNotAnswer(t *testing.T) {
	w := lostWorld(t, manifest.PhaseUpdating, domain.LookOut{Found: true, State: "running"})
	w.fail = failing(activities.SweepLookHost, errs.Transient, 1<<30)
	w.env.RegisterWorkflow(SettleServer)
	start := w.env.Now()
	w.env.ExecuteWorkflow(Sweep, SweepIn{})
	require.NoError(t, w.env.GetWorkflowError())
	var out SweepOut
	require.NoError(t, w.env.GetWorkflowResult(&out))
	require.Len(t, out.Away, 2)
	require.Less(t, w.env.Now().Sub(start), 10*time.Minute)
	require.NotContains(t, w.calls(), activities.SweepClearHost)
}

func TestWhatEtcdHoldsOfAnOwnerStaysWhileItsGuestCannotBeRemoved(t *testing.T) {
	w := lostWorld(t, manifest.PhaseUpdating, domain.LookOut{Found: true, State: "running"})
	w.fail = failing(activities.SweepClearHost, errs.Permanent, 1)
	w.env.RegisterWorkflow(SettleServer)
	w.env.ExecuteWorkflow(Sweep, SweepIn{})
	require.NoError(t, w.env.GetWorkflowError())
	var out SweepOut
	require.NoError(t, w.env.GetWorkflowResult(&out))
	require.Contains(t, out.Findings[0].Error, "no luck")
	require.NotContains(t, w.calls(), activities.SweepClearState)
}

// TestAServerThatWasBuiltIsNeverTakenBackWhenItsHeldOperationIsLost also where its guest
// is gone: its disks are of value.
func TestAServerThatWasBuiltIsNeverTakenBackWhenItsHeldOperationIsLost(t *testing.T) {
	for _, name := range []string{NameUpdateServer, NameRebuildServer, NameConfigureServer, NamePowerServer} {
		for _, phase := range []manifest.Phase{manifest.PhaseHeld, manifest.PhaseUpdating} {
			t.Run(name+" "+string(phase), func(t *testing.T) {
				w := lostWorld(t, phase, domain.LookOut{})
				answer(w, activities.StateAdopt, func(in state.AdoptIn) state.AdoptOut {
					return state.AdoptOut{Found: true, Was: manifest.Operation{Type: name}, Record: manifest.Record{
						Kind: in.Kind, Spec: []byte(`{}`), Metadata: manifest.RecordMeta{Metadata: manifest.Metadata{Name: in.Name}, UID: in.UID},
						Status: manifest.Status{Phase: phase, Host: "kvm1"},
					}}
				})
				w.env.ExecuteWorkflow(SettleServer, SettleIn{Kind: manifest.KindServer, Name: "db", UID: "uid-1"})
				require.NoError(t, w.env.GetWorkflowError())
				require.Equal(t, []string{activities.StateAdopt, activities.DomainLook, activities.NetworkUnwire, activities.StateFinish}, w.calls())
				require.Equal(t, manifest.PhaseStopped, w.settledAs(t).Phase)
			})
		}
	}
}
