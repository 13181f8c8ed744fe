package workflows

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/activities/domain"
	"burrow.dev/burrow/activities/ipam"
	"burrow.dev/burrow/activities/network"
	"burrow.dev/burrow/activities/seed"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
)

// pluggable makes the server one with two NICs, and the world one that plugs them.
func (w *world) pluggable(t *testing.T) {
	t.Helper()
	port := func(i int, nic manifest.NIC) manifest.Port {
		return manifest.Port{
			Name: nic.Name, Index: i, Network: nic.Network, NetworkUID: "uid-" + nic.Network, MAC: "mac-" + nic.Name,
			Bridge: "br-" + nic.Network, Addresses: []string{"172.16.90." + nic.Name + "/24"}, RateMbps: nic.RateMbps,
		}
	}
	answer(w, activities.IPAMAllocate, func(in ipam.AllocateIn) ipam.AllocateOut {
		var out ipam.AllocateOut
		for i, nic := range in.NICs {
			out.Ports = append(out.Ports, port(i, nic))
		}
		return out
	})
	answer(w, activities.SeedReaddress, func(seed.ReaddressIn) seed.ReaddressOut { return seed.ReaddressOut{Path: "/seed-2.iso"} })
	nothing[seed.PruneIn](w, activities.SeedPrune)
	nothing[domain.StartIn](w, activities.DomainRedefine)
	nothing[domain.InsertSeedIn](w, activities.DomainInsertSeed)
	answer(w, activities.DomainPlugNICs, func(domain.PlugNICsIn) domain.PlugNICsOut { return domain.PlugNICsOut{} })
	answer(w, activities.DomainUnplugNICs, func(domain.PlugNICsIn) domain.UnplugNICsOut { return domain.UnplugNICsOut{} })
}

// twoNICs is a server that was built with the NICs a (on lan) and b (on dmz).
func twoNICs(t *testing.T) *world {
	t.Helper()
	w := updateWorld(t)
	w.haveTwoNICs(t)
	return w
}

func (w *world) haveTwoNICs(t *testing.T) {
	t.Helper()
	built := dbServer()
	built.Spec.NetworkInterface = []manifest.NIC{{Name: "a", Network: "lan"}, {Name: "b", Network: "dmz"}}
	rec := standingRecord(t, built)
	rec.Status.Ports = []manifest.Port{
		{Name: "a", Index: 0, Network: "lan", NetworkUID: "uid-lan", Bridge: "br-lan", MAC: "mac-a", Addresses: []string{"172.16.90.a/24"}},
		{Name: "b", Index: 1, Network: "dmz", NetworkUID: "uid-dmz", Bridge: "br-dmz", MAC: "mac-b", Addresses: []string{"172.16.90.b/24"}},
	}
	w.stands = &rec
}

// swap replaces b by c on another network, and limits a.
func swap(in *UpdateServerIn) {
	in.Spec.NetworkInterface = []manifest.NIC{{Name: "c", Network: "san"}, {Name: "a", Network: "lan", RateMbps: 5}}
}

// swapAndGrow is swap, and more processors.
func swapAndGrow(in *UpdateServerIn) {
	swap(in)
	in.Spec.CPU = 4
}

func names(ports []manifest.Port) []string {
	var all []string
	for _, p := range ports {
		all = append(all, p.Name)
	}
	return all
}

func TestNICsArePluggedWiredAndUnpluggedUnderTheGuest(t *testing.T) {
	w := twoNICs(t)
	w.env.ExecuteWorkflow(UpdateServer, changed(false, swap))
	require.NoError(t, w.env.GetWorkflowError())
	require.Equal(t, []string{
		activities.StateBegin, activities.IPAMAllocate, activities.NetworkEnsure, activities.NetworkProbe, activities.SeedReaddress,
		activities.DomainRedefine, activities.DomainPlugNICs, activities.NetworkWire, activities.DomainInsertSeed,
		activities.DomainUnplugNICs, activities.StateFinish,
		activities.NetworkUnwire, activities.DomainPlugNICs, activities.NetworkWire, activities.NetworkRelease, activities.IPAMRelease, activities.SeedPrune,
	}, w.calls(), "an address is free for others only when nobody can use it any more")
	require.Equal(t, []string{"c"}, names(w.last[activities.NetworkEnsure].(network.EnsureIn).Ports))
	require.Equal(t, []string{"c", "a"}, names(w.last[activities.NetworkWire].(network.WireIn).Ports))
	require.Equal(t, []string{"b"}, names(w.last[activities.NetworkUnwire].(network.UnwireIn).Ports))
	require.Equal(t, []string{"b"}, names(w.last[activities.NetworkRelease].(network.ReleaseIn).Ports))
	require.Equal(t, "b", w.last[activities.IPAMRelease].(ipam.ReleaseIn).NICs[0].Name)
	require.Equal(t, "/seed-2.iso", w.last[activities.SeedPrune].(seed.PruneIn).Keep)
	defined := w.last[activities.DomainRedefine].(domain.StartIn)
	require.Equal(t, []string{"c", "a"}, names(defined.Ports))
	require.Equal(t, "/seed-2.iso", defined.Seed)

	status := w.finished(t).Status
	require.Equal(t, "/seed-2.iso", status.Seed)
	require.Empty(t, status.Conditions)
	require.Equal(t, 5, status.Ports[1].RateMbps)
	require.Equal(t, []int{2, 0}, []int{status.Ports[0].Index, status.Ports[1].Index}, "a stays eth0, and c takes nobody's place")
}

func TestARestartBringsNICsWithoutThePlug(t *testing.T) {
	w := twoNICs(t)
	w.env.ExecuteWorkflow(UpdateServer, changed(true, swap))
	require.NoError(t, w.env.GetWorkflowError())
	for _, live := range []string{activities.DomainPlugNICs, activities.DomainUnplugNICs, activities.DomainRedefine, activities.DomainInsertSeed} {
		if live != activities.DomainPlugNICs { // it looks whether the guest runs before names are registered anew
			require.NotContains(t, w.calls(), live)
		}
	}
	require.Equal(t, []string{"c", "a"}, names(w.last[activities.DomainStart].(domain.StartIn).Ports))
	require.Equal(t, "/seed-2.iso", w.last[activities.DomainStart].(domain.StartIn).Seed)
}

func TestAGuestThatIsOffGetsItsNICsWithItsNextStart(t *testing.T) {
	w := twoNICs(t)
	w.stands.Status.PowerOff, w.stands.Status.Phase = true, manifest.PhaseStopped
	w.env.ExecuteWorkflow(UpdateServer, changed(false, swap))
	require.NoError(t, w.env.GetWorkflowError())
	for _, live := range []string{activities.DomainPlugNICs, activities.NetworkWire, activities.DomainUnplugNICs, activities.DomainInsertSeed} {
		require.NotContains(t, w.calls(), live)
	}
	require.Equal(t, manifest.PhaseStopped, w.finished(t).Status.Phase)
	require.Contains(t, w.calls(), activities.IPAMRelease)
}

func TestANICThatTheGuestKeepsIsSaidAndNeedsARestart(t *testing.T) {
	w := twoNICs(t)
	answer(w, activities.DomainUnplugNICs, func(domain.PlugNICsIn) domain.UnplugNICsOut { return domain.UnplugNICsOut{Left: []string{"b"}} })
	w.env.ExecuteWorkflow(UpdateServer, changed(false, swap))
	require.NoError(t, w.env.GetWorkflowError())
	c := w.finished(t).Status.Conditions
	require.Len(t, c, 1)
	require.Equal(t, manifest.ConditionRestart, c[0].Type)
	require.Contains(t, c[0].Message, "still has b, connected to nothing, until `burrow restart db`")
	require.Contains(t, w.calls(), activities.IPAMRelease, "it is off the wire all the same")
}

// keptBefore is the condition of a guest that still has NICs from earlier updates.
func keptBefore(names ...string) manifest.Condition {
	return manifest.Condition{Type: manifest.ConditionRestart, Status: true, Reason: "NICs", Message: "the guest still has " + strings.Join(names, ", "), Objects: names}
}

func TestANICThatTheGuestKeptAndGetsAgainNeedsNoRestart(t *testing.T) {
	for _, tt := range []struct {
		name string
		kept []string
		left []string
		says []string
	}{
		{"the only one", []string{"c"}, nil, nil},
		{"one of two", []string{"c", "d"}, nil, []string{"d"}},
		{"and another is kept", []string{"c"}, []string{"b"}, []string{"b"}},
		{"and more are kept", []string{"d"}, []string{"b"}, []string{"b", "d"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := twoNICs(t)
			memory := manifest.Condition{Type: manifest.ConditionRestart, Status: true, Reason: "Updated"}
			w.stands.Status.Conditions = []manifest.Condition{memory, keptBefore(tt.kept...)}
			answer(w, activities.DomainUnplugNICs, func(domain.PlugNICsIn) domain.UnplugNICsOut { return domain.UnplugNICsOut{Left: tt.left} })
			w.env.ExecuteWorkflow(UpdateServer, changed(false, swap))
			require.NoError(t, w.env.GetWorkflowError())
			c := w.finished(t).Status.Conditions
			require.Equal(t, memory, c[0], "what else a restart is needed for stays")
			if tt.says == nil {
				require.Len(t, c, 1)
				return
			}
			require.Len(t, c, 2)
			require.Equal(t, tt.says, c[1].Objects)
			require.Contains(t, c[1].Message, "still has "+strings.Join(tt.says, ", ")+",")
		})
	}
}

func TestANICThatIsTakenBackAndKeptIsSaid(t *testing.T) {
	w := twoNICs(t)
	w.stands.Status.Conditions = []manifest.Condition{keptBefore("d")}
	answer(w, activities.DomainUnplugNICs, func(in domain.PlugNICsIn) domain.UnplugNICsOut {
		return domain.UnplugNICsOut{Left: names(in.Ports)}
	})
	w.fail = failing(activities.DomainInsertSeed, errs.Permanent, 1)
	w.env.ExecuteWorkflow(UpdateServer, changed(false, swapAndGrow))
	require.ErrorContains(t, w.env.GetWorkflowError(), "no luck")
	c := w.settledSayingWhy(t).Conditions
	require.Len(t, c, 1, "nobody has asked the guest for processors")
	require.Equal(t, []string{"c", "d"}, c[0].Objects)
}

func TestNICsThatFailAreTakenBack(t *testing.T) {
	for _, step := range []string{
		activities.IPAMAllocate, activities.NetworkEnsure, activities.NetworkProbe, activities.SeedReaddress, activities.DomainRedefine,
		activities.DomainPlugNICs, activities.NetworkWire, activities.DomainInsertSeed, activities.DomainUnplugNICs, activities.StateFinish,
	} {
		t.Run(step, func(t *testing.T) {
			w := twoNICs(t)
			w.fail = failing(step, errs.Permanent, 1)
			w.env.ExecuteWorkflow(UpdateServer, changed(false, swap))
			require.ErrorContains(t, w.env.GetWorkflowError(), step+": no luck")
			require.Equal(t, w.stands.Status, w.settledSayingWhy(t))
			require.Equal(t, []string{"c"}, nicNames(w.last[activities.IPAMRelease].(ipam.ReleaseIn).NICs))
			if slices.Contains(w.calls(), activities.NetworkEnsure) {
				require.Equal(t, []string{"c"}, names(w.last[activities.NetworkRelease].(network.ReleaseIn).Ports))
			}
			if slices.Contains(w.calls(), activities.SeedReaddress) {
				require.Equal(t, "/seed.iso", w.last[activities.SeedPrune].(seed.PruneIn).Keep)
			}
			if !slices.Contains(w.calls(), activities.DomainRedefine) {
				return
			}
			require.Equal(t, []string{"a", "b"}, names(w.last[activities.DomainRedefine].(domain.StartIn).Ports))
			require.Equal(t, []string{"c"}, names(w.last[activities.NetworkUnwire].(network.UnwireIn).Ports))
			require.Equal(t, []string{"c"}, names(w.last[activities.DomainUnplugNICs].(domain.PlugNICsIn).Ports))
			require.Equal(t, []string{"b"}, names(w.last[activities.DomainPlugNICs].(domain.PlugNICsIn).Ports), "one that was unplugged is back")
			require.Equal(t, []string{"a", "b"}, names(w.last[activities.NetworkWire].(network.WireIn).Ports), "with the settings that they had")
			require.Equal(t, "/seed.iso", w.last[activities.DomainInsertSeed].(domain.InsertSeedIn).Seed)
		})
	}
}

func nicNames(nics []manifest.NIC) []string {
	var all []string
	for _, n := range nics {
		all = append(all, n.Name)
	}
	return all
}

func TestAGuestThatPowersOffWhileItIsPluggedEndsTheWiring(t *testing.T) {
	w := twoNICs(t)
	looked := 0
	answer(w, activities.DomainPlugNICs, func(domain.PlugNICsIn) domain.PlugNICsOut {
		looked++
		return domain.PlugNICsOut{Off: looked > 1}
	})
	w.fail = failing(activities.NetworkWire, errs.Transient, 1000)
	w.env.SetStartTime(time.Now())
	w.env.ExecuteWorkflow(UpdateServer, changed(false, swap))
	require.NoError(t, w.env.GetWorkflowError())
	require.Equal(t, 2, looked)
	require.Equal(t, manifest.PhaseStopped, w.finished(t).Status.Phase)
}

func TestAGuestThatIsOffWhenItsNewNICsAreWiredIsLookedAtAgain(t *testing.T) {
	w := twoNICs(t)
	looked := 0
	answer(w, activities.DomainPlugNICs, func(domain.PlugNICsIn) domain.PlugNICsOut {
		looked++
		return domain.PlugNICsOut{Off: looked > 2}
	})
	answer(w, activities.NetworkWire, func(network.WireIn) network.WireOut { return network.WireOut{Off: true} })
	w.env.ExecuteWorkflow(UpdateServer, changed(false, swap))
	require.NoError(t, w.env.GetWorkflowError())
	require.Equal(t, 2, w.seen[activities.NetworkWire])
	require.Equal(t, manifest.PhaseStopped, w.finished(t).Status.Phase)
}

func TestAWeekWithoutASwitchTakesFewRounds(t *testing.T) {
	away, rounds := 7*24*time.Hour, 0
	for ; away > 0; rounds++ {
		away -= wireWithin(rounds)
	}
	require.Equal(t, wireTimeout, wireWithin(0), "one that is back soon is not waited for longer")
	require.Less(t, rounds, 180)
}

func TestProcessorsThatTheGuestTakesNeedNoRestart(t *testing.T) {
	w := updateWorld(t)
	answer(w, activities.DomainFit, func(in domain.FitIn) domain.FitOut {
		return domain.FitOut{Running: true, CPU: in.CPU, Memory: 1024}
	})
	w.stands.Status.Conditions = []manifest.Condition{{Type: manifest.ConditionRestart, Status: true, Reason: "Updated"}}
	w.env.ExecuteWorkflow(UpdateServer, changed(false, func(in *UpdateServerIn) { in.Spec.CPU = 4 }))
	require.NoError(t, w.env.GetWorkflowError())
	require.Empty(t, w.finished(t).Status.Conditions)
}

func TestMemoryThatIsDeclaredAsItRunsNeedsNoRestart(t *testing.T) {
	w := updateWorld(t)
	was := dbServer()
	was.Spec.Memory = 2048 // declared since, and not seen by the guest
	rec := standingRecord(t, was)
	rec.Status.Conditions = []manifest.Condition{{Type: manifest.ConditionRestart, Status: true, Reason: "Updated"}}
	w.stands = &rec
	w.env.ExecuteWorkflow(UpdateServer, changed(false, func(*UpdateServerIn) {})) // back to what runs: 1024
	require.NoError(t, w.env.GetWorkflowError())
	require.Equal(t, 1024, w.last[activities.DomainFit].(domain.FitIn).Memory)
	require.Empty(t, w.finished(t).Status.Conditions)
}
