package worker

import (
	"context"
	"log/slog"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/activities/ipam"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/etcdstate"
	"burrow.dev/burrow/manifest"
	"burrow.dev/burrow/workflows"
)

// hostDies ends the host's worker and its lease: the machine is off, or cut off.
func (w *sweepWorld) hostDies() {
	w.t.Helper()
	w.host.releaseAll()
	w.onHost.Stop()
	w.hostVanishes()
}

// hostReturns is what a host worker does at its start: it pays, and only then it lives and
// takes work.
func (w *sweepWorld) hostReturns() {
	w.t.Helper()
	w.pay()
	w.hostLives()
	w.startHost()
}

func (w *sweepWorld) pay() {
	w.t.Helper()
	do := w.host.activities()
	do[activities.IPAMRelease] = ipam.New(w.store, w.pool).ReleaseOwed
	require.NoError(w.t, debtor{host: "kvm1", store: w.store, do: do, log: slog.New(slog.DiscardHandler)}.payAll(w.t.Context()))
}

func (w *sweepWorld) declareLost() workflows.LoseHostOut {
	w.t.Helper()
	var out workflows.LoseHostOut
	require.NoError(w.t, w.run(workflows.LoseHostID("kvm1"), workflows.NameLoseHost, workflows.LoseHostIn{Host: "kvm1", RequestedBy: "ops"}).Get(w.t.Context(), &out))
	return out
}

func (w *sweepWorld) remove(name string) client.WorkflowRun {
	w.t.Helper()
	return w.run("server/"+name, workflows.NameDeleteServer, workflows.DeleteIn{Name: name})
}

// awaitPending waits until an operation has an activity scheduled.
func (w *sweepWorld) awaitPending(run client.WorkflowRun, activity string) {
	w.t.Helper()
	require.Eventually(w.t, func() bool {
		d, err := w.client.DescribeWorkflow(w.t.Context(), run.GetID(), run.GetRunID())
		if err != nil {
			return false
		}
		for _, p := range d.RawResponse.GetPendingActivities() {
			if p.ActivityType.Name == activity {
				return true
			}
		}
		return false
	}, patience, 20*time.Millisecond)
}

// addressOf is the first address of a server.
func (w *sweepWorld) addressOf(name string) string {
	w.t.Helper()
	return w.record(manifest.KindServer, name).Status.Addresses[0]
}

func TestALostHostEndsTheDeleteThatWaitsForItAndPaysWhenItIsBack(t *testing.T) {
	w := newSweepWorld(t)
	w.network("a")
	before := w.census()
	require.NoError(t, w.provision("db", nil).Get(t.Context(), nil))
	uid, address := w.record(manifest.KindServer, "db").Metadata.UID, w.addressOf("db")
	w.hostDies()
	gone := w.remove("db")
	w.awaitPending(gone, activities.AnsibleReap)

	out := w.declareLost()
	require.Equal(t, []string{"db"}, out.Servers)
	require.Equal(t, []string{"server/db"}, out.Told)
	require.NoError(t, gone.Get(t.Context(), nil))
	_, err := w.store.Get(t.Context(), manifest.KindServer, "db")
	require.ErrorIs(t, err, errs.ErrNotFound, "its record is gone")

	host := w.record(manifest.KindHost, "kvm1")
	require.Equal(t, manifest.PhaseLost, host.Status.Phase)
	require.Equal(t, []string{
		"server/db: stop its playbook", "server/db: remove its domain", "server/db: unwire its ports", "server/db: remove its seed and keys",
	}, host.Status.Debts[:4])
	require.ElementsMatch(t, []string{"server/db: remove its volumes", "server/db: release its networks"}, host.Status.Debts[4:6])
	require.Equal(t, []string{"server/db: release its addresses"}, host.Status.Debts[6:])

	t.Run("what its guest may still use is given to nobody", func(t *testing.T) {
		defer w.as(t)()
		for range 2 {
			w.sweep(workflows.SweepIn{})
		}
		owned := false
		for _, key := range w.census() {
			owned = owned || key == "reservations/kvm1/"+uid
		}
		require.False(t, owned, "its place is free")
		_, running := w.host.get("domain/" + uid)
		require.True(t, running)
		require.Error(t, w.run("network/a", workflows.NameDeleteNetwork, workflows.DeleteIn{Name: "a"}).Get(t.Context(), nil))
		_, err := ipam.New(w.store, w.pool).Allocate(t.Context(), ipam.AllocateIn{
			Server: activities.Server{Name: "thief", UID: "11111111-1111-4111-8111-111111111111"},
			NICs:   []manifest.NIC{{Name: "a-0", Network: "a", Address: []string{address[:len(address)-3]}}},
		})
		require.ErrorIs(t, err, errs.ErrExists)
	})

	w.hostReturns()
	require.Equal(t, before, w.census(), "nothing is left")
	require.Equal(t, manifest.PhaseReady, w.record(manifest.KindHost, "kvm1").Status.Phase)
	require.NoError(t, w.provision("db", nil).Get(t.Context(), nil), "the host takes work again")
	require.NoError(t, w.remove("db").Get(t.Context(), nil))
	require.Equal(t, before, w.census())
}

func TestALostHostFailsTheBuildsThatAreOnIt(t *testing.T) {
	w := newSweepWorld(t)
	w.network("a")
	before := w.census()
	for _, at := range []string{activities.ImageEnsure, activities.VolumeBuild, activities.SeedWrite, activities.NetworkWire} {
		t.Run(at, func(t *testing.T) {
			defer w.as(t)()
			w.host.block(at)
			run := w.provision("db", nil)
			w.host.awaitReached(at)
			w.hostVanishes() // cut off, its worker goes on
			w.declareLost()
			err := run.Get(t.Context(), nil)
			require.ErrorContains(t, err, "host kvm1 was declared lost")
			rec := w.record(manifest.KindServer, "db")
			require.Equal(t, manifest.PhaseFailed, rec.Status.Phase)
			require.Contains(t, rec.Status.Message, "host kvm1 was declared lost")
			require.NoError(t, w.remove("db").Get(t.Context(), nil), "a delete of what failed gives nothing away")
			debts, err := w.store.Debts(t.Context(), "kvm1")
			require.NoError(t, err)
			if at != activities.ImageEnsure {
				require.NotEmpty(t, debts)
				require.Equal(t, activities.IPAMRelease, debts[len(debts)-1].Activity)
			}
			w.hostDies()
			w.hostReturns()
			require.Equal(t, before, w.census())
		})
	}
}

func TestAHostCanPayEverythingThatItMayOwe(t *testing.T) {
	do := (&host{parts: &parts{Options: Options{Log: slog.New(slog.DiscardHandler)}}}).debtor().do
	owable := 0
	for name, run := range do {
		if _, ok := workflows.Owable(name); !ok && name != activities.IPAMRelease {
			continue
		}
		owable++
		f := reflect.TypeOf(run)
		require.Equal(t, 2, f.NumIn(), name)
		require.Equal(t, reflect.TypeFor[activities.Nothing](), f.Out(0), "%s answers nothing: nobody waits for it", name)
		require.Equal(t, reflect.TypeFor[error](), f.Out(1), name)
	}
	require.Equal(t, 13, owable)
}

func TestADebtThatIsRefusedForGoodKeepsNoneOfTheOthers(t *testing.T) {
	w := newSweepWorld(t)
	w.hostDies()
	w.declareLost()
	var done []string
	do := map[string]any{
		"refused": func(context.Context, activities.Server) (activities.Nothing, error) {
			return activities.Nothing{}, errs.NewPermanent("domain db", "remove", errs.ErrNotManaged, "")
		},
		"fails once": func(context.Context, activities.Server) (activities.Nothing, error) {
			if done = append(done, "fails once"); len(done) == 1 {
				return activities.Nothing{}, errs.NewTransient("domain db", "remove", errs.ErrUnavailable)
			}
			return activities.Nothing{}, nil
		},
		"last": func(_ context.Context, s activities.Server) (activities.Nothing, error) {
			done = append(done, s.Name)
			return activities.Nothing{}, nil
		},
	}
	for _, name := range []string{"refused", "unknown", "fails once", "last"} {
		owed, err := w.store.Owe(t.Context(), etcdstate.Debt{Host: "kvm1", Object: "server/db", What: name, Activity: name, Input: []byte(`{"name":"db"}`)})
		require.NoError(t, err)
		require.True(t, owed)
	}
	d := debtor{host: "kvm1", store: w.store, do: do, log: slog.New(slog.DiscardHandler)}
	require.ErrorIs(t, d.payAll(t.Context()), errs.ErrUnavailable, "the host is not ready, and tries again")
	require.Equal(t, manifest.PhaseLost, w.record(manifest.KindHost, "kvm1").Status.Phase)
	require.NoError(t, d.payAll(t.Context()))
	require.Equal(t, []string{"fails once", "fails once", "db"}, done, "in their order, and none before the one before it")
	require.Equal(t, manifest.PhaseUnknown, w.record(manifest.KindHost, "kvm1").Status.Phase)
}

func TestServersOfALostHostSayItAndAreDeletedAtOnce(t *testing.T) {
	w := newSweepWorld(t)
	w.network("a")
	before := w.census()
	require.NoError(t, w.provision("db", nil).Get(t.Context(), nil))
	require.NoError(t, w.provision("web", nil).Get(t.Context(), nil))
	err := w.run(workflows.LoseHostID("kvm1"), workflows.NameLoseHost, workflows.LoseHostIn{Host: "kvm1"}).Get(t.Context(), nil)
	require.ErrorContains(t, err, "its worker lives")
	err = w.run(workflows.LoseHostID("kvm9"), workflows.NameLoseHost, workflows.LoseHostIn{Host: "kvm9"}).Get(t.Context(), nil)
	require.ErrorContains(t, err, "not found")

	w.hostDies()
	require.Empty(t, w.declareLost().Told)
	rec := w.record(manifest.KindServer, "db")
	require.Equal(t, manifest.PhaseUnknown, rec.Status.Phase)
	require.Contains(t, rec.Status.Message, "host kvm1 was declared lost")
	err = w.run("server/db", workflows.NamePowerServer, workflows.PowerServerIn{Name: "db", Action: workflows.PowerStop}).Get(t.Context(), nil)
	require.ErrorContains(t, err, "was declared lost")
	require.Equal(t, manifest.PhaseUnknown, w.record(manifest.KindServer, "db").Status.Phase, "a refusal leaves it as it was")
	require.NoError(t, w.remove("db").Get(t.Context(), nil))

	err = w.store.KeepAlive(t.Context(), "kvm1", func() {})
	require.ErrorIs(t, err, etcdstate.ErrHostLost, "it cannot live before it has paid")
	w.hostReturns()
	web := w.record(manifest.KindServer, "web").Status
	require.Equal(t, manifest.PhaseRunning, web.LastPhase(), "its host brings up what was not deleted")
	require.NoError(t, w.remove("web").Get(t.Context(), nil))
	require.Equal(t, before, w.census())
}

func TestAnOperationThatWasLostIsSettledWithoutItsLostHost(t *testing.T) {
	w := newSweepWorld(t)
	w.network("a")
	before := w.census()
	require.NoError(t, w.provision("db", nil).Get(t.Context(), nil))
	w.hostDies()
	w.awaitPending(w.remove("db"), activities.AnsibleReap)
	w.loseHistory()
	w.onHost.Stop()
	require.Contains(t, asJSON(t, w.sweep(workflows.SweepIn{})), "waits for host kvm1")
	w.declareLost()
	require.Contains(t, asJSON(t, w.sweep(workflows.SweepIn{})), "deleted to the end")
	w.hostReturns()
	require.Equal(t, before, w.census())
}
