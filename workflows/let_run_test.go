package workflows

import (
	"testing"

	"github.com/stretchr/testify/require"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/activities/domain"
	"burrow.dev/burrow/activities/network"
	"burrow.dev/burrow/manifest"
)

func TestAGuestThatEndsBeforeItRunsIsStartedAgain(t *testing.T) {
	for name, found := range map[string]func(*world){
		"before its ports were wired": func(w *world) {
			answer(w, activities.NetworkWire, func(network.WireIn) network.WireOut {
				return network.WireOut{Off: w.seen[activities.DomainStart] < 3}
			})
		},
		"before it was let run": func(w *world) {
			answer(w, activities.DomainResume, func(domain.ResumeIn) domain.ResumeOut {
				return domain.ResumeOut{Off: w.seen[activities.DomainStart] < 3}
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			found(w)
			w.env.ExecuteWorkflow(ProvisionServer, dbServer())
			require.NoError(t, w.env.GetWorkflowError())
			calls := w.calls()
			require.Equal(t, 3, w.seen[activities.DomainStart])
			require.Less(t, lastIndex(calls, activities.DomainStart), lastIndex(calls, activities.NetworkWire), "what was started is wired")
			require.Less(t, lastIndex(calls, activities.NetworkWire), lastIndex(calls, activities.DomainResume))
		})
	}
}

func TestAStartedServersGuestThatEndsIsStartedAsItsRecordHasIt(t *testing.T) {
	w := newWorld(t)
	w.record = manifest.Status{Phase: manifest.PhaseUpdating, Host: "kvm1", PowerOff: true, Seed: "/seed.iso"}
	answer(w, activities.NetworkWire, func(network.WireIn) network.WireOut {
		return network.WireOut{Off: w.seen[activities.DomainStart] < 2}
	})
	w.env.ExecuteWorkflow(PowerServer, PowerServerIn{Name: "db", Action: PowerStart})
	require.NoError(t, w.env.GetWorkflowError())
	require.Equal(t, 2, w.seen[activities.DomainStart])
	require.Equal(t, "/seed.iso", w.last[activities.DomainStart].(domain.StartIn).Seed)
}

func TestAGuestThatNeverLastsIsSomebodysCase(t *testing.T) {
	w := newWorld(t)
	answer(w, activities.NetworkWire, func(network.WireIn) network.WireOut { return network.WireOut{Off: true} })
	in := dbServer()
	in.Spec.OnFailure = manifest.OnFailureRollback
	w.env.ExecuteWorkflow(ProvisionServer, in)
	require.ErrorContains(t, w.env.GetWorkflowError(), "/var/log/libvirt/qemu/db.log")
	require.Equal(t, startsMost, w.seen[activities.DomainStart])
	require.Subset(t, w.calls(), []string{activities.NetworkUnwire, activities.DomainRemove, activities.PlaceRelease}, "and undone")
}
