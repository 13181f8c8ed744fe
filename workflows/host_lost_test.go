package workflows

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/activities/domain"
	"burrow.dev/burrow/activities/lost"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
)

// hostGone is a world whose host kvm1 can be declared lost, within minutes: the SDK's test
// environment gives up what is retried after ten attempts.
type hostGone struct {
	*world
	lost   bool
	debts  []string
	hangs  string // the activity that nobody does; "" is none
	answer func() // called when the host is asked about, or owes
}

func newHostGone(t *testing.T) *hostGone {
	t.Helper()
	h := &hostGone{world: newWorld(t)}
	answer(h.world, activities.LostAsk, func(in lost.AskIn) lost.AskOut {
		require.Equal(t, "kvm1", in.Host)
		return lost.AskOut{Lost: h.lost}
	})
	answer(h.world, activities.LostOwe, func(in lost.OweIn) lost.OweOut {
		require.Equal(t, "kvm1", in.Host)
		require.True(t, json.Valid(in.Input))
		if h.lost {
			h.debts = append(h.debts, in.Object+": "+in.What)
		}
		defer func() {
			if h.answer != nil {
				h.answer()
			}
		}()
		return lost.OweOut{Owed: h.lost}
	})
	h.fail = func(name string, _ int) error {
		if name == h.hangs {
			return errs.NewTransient("host kvm1", name, errs.ErrUnavailable)
		}
		return nil
	}
	return h
}

// declareAt declares the host lost at a time after the start.
func (h *hostGone) declareAt(after time.Duration) {
	h.env.RegisterDelayedCallback(func() {
		h.mu.Lock()
		h.lost = true
		h.mu.Unlock()
		h.env.SignalWorkflow(lost.Signal, lost.HostLost{Host: "kvm1"})
	}, after)
}

func TestADeleteThatWaitsForAHostEndsWhenTheHostIsLost(t *testing.T) {
	h := newHostGone(t)
	rec := standingRecord(t, dbServer())
	h.stands = &rec
	h.hangs = activities.DomainRemove
	h.declareAt(time.Minute)
	h.env.ExecuteWorkflow(DeleteServer, DeleteIn{Name: "db"})
	require.NoError(t, h.env.GetWorkflowError())
	require.Subset(t, h.debts, []string{
		"server/db: remove its domain", "server/db: unwire its ports", "server/db: remove its seed and keys",
		"server/db: remove its volumes", "server/db: release its networks",
	})
	require.NotContains(t, h.debts, "server/db: stop its playbook", "what was done is not owed")
	require.Equal(t, "server/db: remove its domain", h.debts[0])
	require.Zero(t, h.seen[activities.VolumeRemove])
	require.Equal(t, 1, h.seen[activities.IPAMRelease], "which keeps what a debtor's guest may use")
	require.Equal(t, 1, h.seen[activities.PlaceRelease])
	require.Equal(t, 1, h.seen[activities.StateRemove])
	require.Zero(t, h.seen[activities.LostAsk])
}

func TestAHostThatComesBackInTheMiddleDoesTheRestItself(t *testing.T) {
	h := newHostGone(t)
	rec := standingRecord(t, dbServer())
	h.stands = &rec
	h.hangs = activities.DomainRemove
	h.declareAt(time.Minute)
	h.answer = func() {
		if len(h.debts) == 2 {
			h.lost = false
		}
	}
	h.env.ExecuteWorkflow(DeleteServer, DeleteIn{Name: "db"})
	require.NoError(t, h.env.GetWorkflowError())
	require.Equal(t, []string{"server/db: remove its domain", "server/db: unwire its ports"}, h.debts)
	for _, name := range []string{activities.SeedRemove, activities.VolumeRemove, activities.NetworkRelease} {
		require.Equal(t, 1, h.seen[name], name)
	}
}

func TestABuildOnALostHostFailsAndOwesItsUndo(t *testing.T) {
	for _, at := range []string{activities.ImageEnsure, activities.VolumeBuild, activities.DomainStart, activities.NetworkWire, activities.GuestWaitReady, activities.AnsibleRun} {
		t.Run(at, func(t *testing.T) {
			h := newHostGone(t)
			h.hangs = at
			h.declareAt(time.Minute)
			h.env.ExecuteWorkflow(ProvisionServer, dbServer())
			err := h.env.GetWorkflowError()
			require.ErrorContains(t, err, "host kvm1 was declared lost")
			require.NotContains(t, err.Error(), "could not all be removed")
			for _, name := range []string{activities.DomainRemove, activities.VolumeRemove, activities.NetworkUnwire, activities.SeedRemove} {
				require.Zero(t, h.seen[name], "nothing waits for the host")
			}
			require.Equal(t, 1, h.seen[activities.PlaceRelease])
			require.Equal(t, 1, h.seen[activities.StateFail])
			if at == activities.AnsibleRun {
				require.Equal(t, "server/db: stop its playbook", h.debts[0])
				require.Len(t, h.debts, 6)
			}
			if at == activities.ImageEnsure {
				require.Empty(t, h.debts)
			}
		})
	}
}

func TestAnUndoThatWaitsForAHostEndsWhenTheHostIsLost(t *testing.T) {
	h := newHostGone(t)
	h.hangs = activities.VolumeRemove
	h.fail = func(name string, nth int) error {
		if err := failing(activities.GuestWaitReady, errs.Permanent, 1)(name, nth); err != nil {
			return err
		}
		if name == h.hangs {
			return errs.NewTransient("host kvm1", name, errs.ErrUnavailable)
		}
		return nil
	}
	h.declareAt(time.Minute)
	h.env.ExecuteWorkflow(ProvisionServer, dbServer())
	require.ErrorContains(t, h.env.GetWorkflowError(), "no luck", "the first cause stays")
	require.Equal(t, []string{"server/db: remove its volumes"}, h.debts)
	require.Equal(t, 1, h.seen[activities.IPAMRelease])
}

func TestAHeldBuildWaitsForAPersonAlsoOnALostHost(t *testing.T) {
	h := newHostGone(t)
	h.fail = failing(activities.AnsibleRun, errs.Operator, 9)
	h.declareAt(time.Hour)
	h.env.RegisterDelayedCallback(func() {
		h.env.UpdateWorkflow(UpdateRetry, "u1", callbacks(t), RetryIn{})
	}, 2*time.Hour)
	h.env.ExecuteWorkflow(ProvisionServer, dbServer())
	require.ErrorContains(t, h.env.GetWorkflowError(), "host kvm1 was declared lost")
	require.Len(t, h.debts, 6)
}

func TestAHeldBuildGoesOnWhenItsLostHostIsBack(t *testing.T) {
	h := newHostGone(t)
	h.fail = failing(activities.AnsibleRun, errs.Operator, 1)
	h.declareAt(time.Hour)
	h.env.RegisterDelayedCallback(func() {
		h.mu.Lock()
		h.lost = false
		h.mu.Unlock()
		h.env.UpdateWorkflow(UpdateRetry, "u1", callbacks(t), RetryIn{})
	}, 2*time.Hour)
	h.env.ExecuteWorkflow(ProvisionServer, dbServer())
	require.NoError(t, h.env.GetWorkflowError())
	require.Equal(t, 1, h.seen[activities.LostAsk])
	require.Empty(t, h.debts)
}

func TestAChangeOnALostHostLeavesTheServerAsItWas(t *testing.T) {
	h := newHostGone(t)
	rec := standingRecord(t, dbServer())
	h.stands = &rec
	h.hangs = activities.NetworkWire
	nothing[domain.ShutdownIn](h.world, activities.DomainShutdown)
	h.declareAt(time.Minute)
	h.env.ExecuteWorkflow(PowerServer, PowerServerIn{Name: "db", Action: PowerRestart})
	require.ErrorContains(t, h.env.GetWorkflowError(), "host kvm1 was declared lost")
	require.Equal(t, 1, h.seen[activities.StateFinish], "its record is settled")
	require.Empty(t, h.debts, "nothing of a server that stands is taken away: its host puts it back by its record")
}

func TestLosingAHostMarksItAndTellsItsOperations(t *testing.T) {
	w := newWorld(t)
	answer(w, activities.LostDeclare, func(in lost.DeclareIn) lost.DeclareOut {
		require.Equal(t, "ops", in.By)
		return lost.DeclareOut{Since: in.At}
	})
	answer(w, activities.LostTell, func(in lost.TellIn) lost.TellOut {
		return lost.TellOut{Servers: []string{"db"}, Told: []string{"server/" + in.Host}}
	})
	w.env.ExecuteWorkflow(LoseHost, LoseHostIn{Host: "kvm1", RequestedBy: "ops"})
	var out LoseHostOut
	require.NoError(t, w.env.GetWorkflowResult(&out))
	require.Equal(t, []string{"server/kvm1"}, out.Told)
	require.Equal(t, []string{activities.LostDeclare, activities.LostTell}, w.calls())
	require.False(t, out.Since.IsZero())
	var p Progress
	v, err := w.env.QueryWorkflow(QueryProgress)
	require.NoError(t, err)
	require.NoError(t, v.Get(&p))
	require.Equal(t, manifest.PhaseLost, p.Phase)
}

func TestAPlaybookOnALostHostFailsAndOwesTheEndOfItsRun(t *testing.T) {
	h := newHostGone(t)
	h.cluster(nil)
	h.hangs = activities.AnsibleRun
	h.declareAt(time.Minute)
	h.env.ExecuteWorkflow(RunPlaybook, clusterPlaybook())
	require.ErrorContains(t, h.env.GetWorkflowError(), "host kvm1 was declared lost")
	require.Equal(t, []string{"playbook/cluster: stop its playbook"}, h.debts)
	require.Equal(t, 1, h.seen[activities.StateFail])
}
