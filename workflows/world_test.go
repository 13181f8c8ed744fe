package workflows

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/activities/ansible"
	"burrow.dev/burrow/activities/domain"
	"burrow.dev/burrow/activities/guest"
	"burrow.dev/burrow/activities/image"
	"burrow.dev/burrow/activities/ipam"
	"burrow.dev/burrow/activities/keys"
	"burrow.dev/burrow/activities/network"
	"burrow.dev/burrow/activities/place"
	"burrow.dev/burrow/activities/seed"
	"burrow.dev/burrow/activities/state"
	"burrow.dev/burrow/activities/volume"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
)

// world answers every activity and remembers the calls, so that a test sees in which
// order steps ran and were undone. fail gives a call's error, when it should have one.
type world struct {
	env  *testsuite.TestWorkflowEnvironment
	mu   sync.Mutex
	made []string
	fail func(name string, nth int) error
	seen map[string]int
	last map[string]any
	// record is the status of the record that state.Begin answers
	record manifest.Status
	// stands is the record of a server that was built before; state.Begin answers it.
	stands *manifest.Record
	// activities by their names, for a real worker
	all map[string]any
}

// register gives a real worker the world's activities.
func (w *world) register(r worker.ActivityRegistry) {
	for name, run := range w.all {
		r.RegisterActivityWithOptions(run, activity.RegisterOptions{Name: name})
	}
}

func newWorld(t *testing.T) *world {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	w := &world{env: suite.NewTestWorkflowEnvironment(), seen: map[string]int{}, last: map[string]any{}, all: map[string]any{}}
	w.env.SetTestTimeout(time.Minute)
	answer(w, activities.StateBegin, func(in state.BeginIn) state.BeginOut {
		if w.stands != nil {
			rec := *w.stands
			op := in.Operation
			op.Was = rec.Status.Phase
			rec.Status.Phase, rec.Status.Operation = in.Phase, &op
			out := state.BeginOut{Found: true, Record: rec}
			if in.Declared != nil {
				var err error
				out.Decision, err = manifest.Decide(w.stands, *in.Declared)
				require.NoError(t, err)
			}
			return out
		}
		return state.BeginOut{Found: true, Record: manifest.Record{Kind: in.Kind, Spec: specOr(in.Spec), Status: w.record, Metadata: manifest.RecordMeta{Metadata: in.Metadata, UID: "uid-1", Generation: 1}}}
	})
	answer(w, activities.StateAttachVolumes, func(in state.VolumesIn) state.VolumesOut {
		return state.VolumesOut{Records: []manifest.Record{{Status: manifest.Status{Host: "kvm1", Volume: &manifest.VolumeStatus{}}}}}
	})
	answer(w, activities.StateDetachVolumes, func(state.VolumesIn) state.VolumesOut { return state.VolumesOut{} })
	nothing[state.NoteIn](w, activities.StateNote)
	nothing[state.HoldIn](w, activities.StateHold)
	nothing[state.FinishIn](w, activities.StateFinish)
	nothing[state.FailIn](w, activities.StateFail)
	nothing[state.RemoveIn](w, activities.StateRemove)
	answer(w, activities.PlacePlace, func(place.In) place.Out { return place.Out{Host: "kvm1"} })
	nothing[place.ReleaseIn](w, activities.PlaceRelease)
	answer(w, activities.KeysFetch, func(keys.FetchIn) keys.FetchOut { return keys.FetchOut{Keys: []string{"ssh-ed25519 AAAA"}} })
	nothing[ansible.CheckIn](w, activities.AnsibleCheck)
	answer(w, activities.IPAMAllocate, func(in ipam.AllocateIn) ipam.AllocateOut {
		return ipam.AllocateOut{Ports: []manifest.Port{{Name: "db-net-0", Network: "db-net", Bridge: "br-db-net", Addresses: []string{"172.16.90.2/24"}, VLANs: []int{120}}}}
	})
	nothing[ipam.ReleaseIn](w, activities.IPAMRelease)
	answer(w, activities.ImageEnsure, func(image.EnsureIn) image.EnsureOut { return image.EnsureOut{User: "debian"} })
	answer(w, activities.VolumeBuild, func(volume.BuildIn) volume.BuildOut {
		return volume.BuildOut{Disks: []manifest.Disk{{Name: "boot", Target: "vda"}}}
	})
	nothing[volume.RemoveIn](w, activities.VolumeRemove)
	nothing[network.EnsureIn](w, activities.NetworkEnsure)
	nothing[network.ReleaseIn](w, activities.NetworkRelease)
	answer(w, activities.NetworkProbe, func(network.ProbeIn) network.ProbeOut { return network.ProbeOut{} })
	answer(w, activities.SeedWrite, func(seed.WriteIn) seed.WriteOut {
		return seed.WriteOut{Path: "/seed.iso", Login: "debian", HostKeys: []string{"ssh-ed25519 BBBB"}}
	})
	nothing[seed.RemoveIn](w, activities.SeedRemove)
	answer(w, activities.DomainStart, func(domain.StartIn) domain.StartOut { return domain.StartOut{State: "paused"} })
	nothing[domain.RemoveIn](w, activities.DomainRemove)
	answer(w, activities.NetworkWire, func(network.WireIn) network.WireOut { return network.WireOut{} })
	answer(w, activities.DomainResume, func(domain.ResumeIn) domain.ResumeOut { return domain.ResumeOut{} })
	nothing[network.UnwireIn](w, activities.NetworkUnwire)
	answer(w, activities.GuestWaitReady, func(guest.WaitReadyIn) guest.WaitReadyOut {
		return guest.WaitReadyOut{Address: "172.16.90.2"}
	})
	answer(w, activities.AnsibleRun, func(ansible.RunIn) ansible.RunOut { return ansible.RunOut{RunID: "run-1"} })
	nothing[ansible.ReapIn](w, activities.AnsibleReap)
	return w
}

// answer registers an activity that records its call and answers with reply.
func answer[In, Out any](w *world, name string, reply func(In) Out) {
	run := func(ctx context.Context, in In) (Out, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.made = append(w.made, name)
		w.seen[name]++
		w.last[name] = in
		if w.fail != nil {
			if err := w.fail(name, w.seen[name]); err != nil {
				var none Out
				return none, err
			}
		}
		return reply(in), nil
	}
	w.all[name] = run
	w.env.RegisterActivityWithOptions(run, activity.RegisterOptions{Name: name})
}

func nothing[In any](w *world, name string) {
	answer(w, name, func(In) activities.Nothing { return activities.Nothing{} })
}

func (w *world) calls() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.made)
}

// failing makes the named activity fail with a class on its first n calls.
func failing(name string, class errs.Class, n int) func(string, int) error {
	return func(called string, nth int) error {
		if called != name || nth > n {
			return nil
		}
		return temporal.NewApplicationErrorWithOptions("server/db: "+name+": no luck; try something else", string(class),
			temporal.ApplicationErrorOptions{NonRetryable: class != errs.Transient})
	}
}

func dbServer() ProvisionServerIn {
	return ProvisionServerIn{
		Metadata: manifest.Metadata{Name: "db"}, Bundle: "sha256:00", RequestedBy: "ops",
		Spec: manifest.ServerSpec{
			CPU: 2, Memory: 1024, Image: "debian12", Readiness: manifest.ReadinessCloudInit, OnFailure: manifest.OnFailureRollback,
			NetworkInterface: []manifest.NIC{{Name: "db-net-0", Network: "db-net"}},
			Storage:          []manifest.Storage{{Name: "data-1"}},
			Auth:             manifest.Auth{PublicKey: []string{"ssh-ed25519 AAAA"}},
			Ansible:          &manifest.Ansible{Playbook: []string{"site.yaml"}, OnFailure: manifest.OnFailureHold, Timeout: "2h"},
		},
	}
}

// undone is the order in which a fully built server is taken away.
var undone = []string{
	activities.AnsibleReap, activities.NetworkUnwire, activities.DomainRemove, activities.SeedRemove,
	activities.NetworkRelease, activities.VolumeRemove, activities.IPAMRelease, activities.PlaceRelease, activities.StateDetachVolumes,
}

// requireUndone checks that everything was undone, in reverse, but for what runs side by side.
func requireUndone(t *testing.T, calls []string) {
	t.Helper()
	var got []string
	for _, c := range calls {
		if slices.Contains(undone, c) {
			got = append(got, c)
		}
	}
	require.ElementsMatch(t, undone, got)
	require.Less(t, slices.Index(got, activities.DomainRemove), slices.Index(got, activities.VolumeRemove), "the domain goes before its volumes")
	require.Less(t, slices.Index(got, activities.DomainRemove), slices.Index(got, activities.IPAMRelease), "an address is free only when its guest is gone")
	require.Equal(t, activities.StateDetachVolumes, got[len(got)-1])
}

// specOr is a spec, or an empty one where an operation sent none.
func specOr(spec []byte) []byte {
	if len(spec) == 0 {
		return []byte("{}")
	}
	return spec
}

// standingRecord is a server that was built as declared.
func standingRecord(t *testing.T, in ProvisionServerIn) manifest.Record {
	t.Helper()
	spec, err := json.Marshal(in.Spec)
	require.NoError(t, err)
	return manifest.Record{
		Kind: manifest.KindServer, Spec: spec,
		Metadata: manifest.RecordMeta{Metadata: in.Metadata, UID: "uid-1", Generation: 1},
		Status: manifest.Status{
			Phase: manifest.PhaseRunning, Host: "kvm1", Addresses: []string{"172.16.90.2/24"}, Bundle: in.Bundle, Login: "debian", HostKeys: []string{"ssh-ed25519 BBBB"},
			Ports: []manifest.Port{{Name: "db-net-0", Network: "db-net", NetworkUID: "uid-net", Bridge: "br-db-net", Addresses: []string{"172.16.90.2/24"}}},
			Disks: []manifest.Disk{{Name: "boot", Target: "vda", Volume: "db-uid-1-boot.qcow2", SizeGiB: 10, Owned: true}}, Seed: "/seed.iso",
		},
	}
}
