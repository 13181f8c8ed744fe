package worker

import (
	"encoding/json"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"burrow.dev/burrow/activities/network"
	"burrow.dev/burrow/internal/config"
	"burrow.dev/burrow/manifest"
)

func TestWhichServersAreBroughtUpAgain(t *testing.T) {
	h := &host{parts: &parts{Options: Options{Config: config.Worker{Host: config.Host{Name: "kvm1"}}}}}
	server := func(phase manifest.Phase, change func(*manifest.Record, *manifest.ServerSpec)) manifest.Record {
		rec := manifest.Record{Status: manifest.Status{Phase: phase, Host: "kvm1", Disks: []manifest.Disk{{Name: "boot"}}}}
		spec := manifest.ServerSpec{Autostart: true}
		if change != nil {
			change(&rec, &spec)
		}
		rec.Spec, _ = json.Marshal(spec)
		return rec
	}
	manual := func(_ *manifest.Record, s *manifest.ServerSpec) { s.Autostart = false }
	stopped := func(r *manifest.Record, _ *manifest.ServerSpec) { r.Status.PowerOff = true }
	elsewhere := func(r *manifest.Record, _ *manifest.ServerSpec) { r.Status.Host = "kvm2" }
	unbuilt := func(r *manifest.Record, _ *manifest.ServerSpec) { r.Status.Disks = nil }
	for name, c := range map[string]struct {
		rec           manifest.Record
		boot, restart bool // brought up after a boot of the host, after a restart of the worker
	}{
		"running":                   {server(manifest.PhaseRunning, nil), true, true},
		"running without autostart": {server(manifest.PhaseRunning, manual), false, true},
		"powered itself off":        {server(manifest.PhaseStopped, nil), true, false},
		"stopped on purpose":        {server(manifest.PhaseStopped, stopped), false, false},
		"unknown":                   {server(manifest.PhaseUnknown, nil), true, true},
		"being built":               {server(manifest.PhaseProvisioning, manual), true, true},
		"held":                      {server(manifest.PhaseHeld, nil), true, true},
		"not yet defined":           {server(manifest.PhaseProvisioning, unbuilt), false, false},
		"failed":                    {server(manifest.PhaseFailed, nil), false, false},
		"being deleted":             {server(manifest.PhaseDeleting, nil), false, false},
		"on another host":           {server(manifest.PhaseRunning, elsewhere), false, false},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.boot, h.shouldRun(c.rec, true), "after a boot")
			require.Equal(t, c.restart, h.shouldRun(c.rec, false), "after a restart")
		})
	}
}

func TestAServerThatIsStoppedOrDeletedMeanwhileIsNotBroughtUp(t *testing.T) {
	h := hostWith(t, "shutoff") // whose libvirt cannot start anything
	h.networks = &network.Activities{}
	rec, err := h.store.Create(t.Context(), manifest.Record{
		Kind: manifest.KindServer, Metadata: manifest.RecordMeta{Metadata: manifest.Metadata{Name: "db"}, UID: uuid.NewString()}, Spec: []byte("{}"),
		Status: manifest.Status{Phase: manifest.PhaseRunning, Host: "kvm1", Disks: []manifest.Disk{{Name: "boot"}}},
	})
	require.NoError(t, err)
	_, err = h.store.Update(t.Context(), manifest.KindServer, "db", func(r *manifest.Record) error {
		r.Status.Phase, r.Status.PowerOff = manifest.PhaseStopped, true
		return nil
	})
	require.NoError(t, err)
	require.NoError(t, h.bringUp(t.Context(), rec), "stopped")

	require.NoError(t, h.store.Delete(t.Context(), manifest.KindServer, "db", rec.Metadata.UID))
	require.NoError(t, h.bringUp(t.Context(), rec), "deleted")
	h.down = []manifest.Record{rec}
	h.restoreDown(t.Context())
	require.Empty(t, h.down, "nobody waits for it any more")
}
