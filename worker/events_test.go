package worker

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"burrow.dev/burrow/activities/domain"
	"burrow.dev/burrow/internal/config"
	"burrow.dev/burrow/internal/devstacktest"
	"burrow.dev/burrow/internal/etcdstate"
	"burrow.dev/burrow/internal/libvirtx"
	"burrow.dev/burrow/manifest"
)

// patience bounds every wait for something that happens by itself.
const patience = 20 * time.Second

// guestState is a libvirt whose every guest is in one state.
type guestState struct {
	domain.Libvirt
	state, reason string
}

func (g guestState) DomainState(context.Context, string) (state, reason string, err error) {
	return g.state, g.reason, nil
}

// hostWith is a host with nothing but its records, and guests in one state.
func hostWith(t *testing.T, state string) *host {
	t.Helper()
	store, err := etcdstate.Open(config.Etcd{Endpoints: []string{devstacktest.Etcd(t)}}, etcdstate.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	p := &parts{Options: Options{Log: slog.New(slog.DiscardHandler)}, store: store}
	p.Config.Host.Name = "kvm1"
	return &host{parts: p, domains: domain.New(domain.Config{Libvirt: guestState{state: state}})}
}

func TestWhatAGuestDidDuringAnOperationIsWrittenWhenTheRecordSettles(t *testing.T) {
	tests := map[string]struct {
		state string
		ends  manifest.Status // how the operation ends
		phase manifest.Phase
	}{
		"it powered itself off": {"shutoff", manifest.Status{Phase: manifest.PhaseRunning, Host: "kvm1"}, manifest.PhaseStopped},
		"a restart mended it": {"running", manifest.Status{
			Phase: manifest.PhaseRunning, Host: "kvm1", Conditions: []manifest.Condition{{Type: manifest.ConditionAttention, Status: true, Reason: "IOError"}},
		}, manifest.PhaseRunning},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			h := hostWith(t, tt.state)
			ctx, cancel := context.WithCancel(t.Context())
			_, err := h.store.Create(ctx, manifest.Record{
				Kind: manifest.KindServer, Metadata: manifest.RecordMeta{Metadata: manifest.Metadata{Name: "db"}, UID: uuid.NewString()},
				Status: manifest.Status{Phase: manifest.PhaseUpdating, Host: "kvm1", Operation: &manifest.Operation{RunID: "run"}},
			})
			require.NoError(t, err)
			ended := make(chan error, 1)
			go func() { ended <- h.review(ctx) }()
			_, err = h.store.Update(ctx, manifest.KindServer, "db", func(r *manifest.Record) error { r.Status = tt.ends; return nil })
			require.NoError(t, err)
			require.Eventually(t, func() bool {
				rec, err := h.store.Get(ctx, manifest.KindServer, "db")
				return err == nil && rec.Status.Phase == tt.phase && len(rec.Status.Conditions) == 0
			}, patience, patience/1000)
			cancel()
			require.ErrorIs(t, <-ended, context.Canceled)
		})
	}
}

// server puts a settled server of kvm1 into the records.
func server(t *testing.T, h *host, status manifest.Status) manifest.Record {
	t.Helper()
	status.Host = "kvm1"
	rec, err := h.store.Create(t.Context(), manifest.Record{
		Kind: manifest.KindServer, Metadata: manifest.RecordMeta{Metadata: manifest.Metadata{Name: "db"}, UID: uuid.NewString()}, Status: status,
	})
	require.NoError(t, err)
	return rec
}

func TestHowAGuestEndedIsWrittenAndKeptUntilItRunsAgain(t *testing.T) {
	h := hostWith(t, "shutoff")
	rec := server(t, h, manifest.Status{Phase: manifest.PhaseRunning})
	look := func(state, reason string) manifest.Status {
		h.domains = domain.New(domain.Config{Libvirt: guestState{state: state, reason: reason}})
		require.NoError(t, h.news(t.Context(), libvirtx.DomainEvent{Type: libvirtx.EventStopped, Name: "db", UUID: manifest.DomainUUID(rec.Metadata.UID)}))
		got, err := h.store.Get(t.Context(), manifest.KindServer, "db")
		require.NoError(t, err)
		return got.Status
	}
	got := look("shutoff", "crashed")
	require.Equal(t, manifest.PhaseStopped, got.Phase)
	require.Len(t, got.Conditions, 1)
	require.Equal(t, "Crashed", got.Conditions[0].Reason)
	require.Contains(t, got.Conditions[0].Message, "burrow start db")
	require.Contains(t, got.Conditions[0].Message, "/var/log/libvirt/qemu/db.log")
	require.Equal(t, got, look("shutoff", ""), "a libvirtd that started again has forgotten why")
	require.Empty(t, look("running", "").Conditions)
	got = look("shutoff", "shutdown")
	require.Equal(t, manifest.PhaseStopped, got.Phase)
	require.Empty(t, got.Conditions)
	got = look("paused", "ioerror")
	require.Equal(t, manifest.PhaseRunning, got.Phase)
	require.Equal(t, "IOError", got.Conditions[0].Reason)
	require.Contains(t, got.Conditions[0].Message, "burrow restart db")
	require.Empty(t, look("running", "").Conditions)
	got = look("paused", "user")
	require.Equal(t, manifest.PhaseRunning, got.Phase)
	require.Equal(t, "Paused", got.Conditions[0].Reason)
	require.Contains(t, got.Conditions[0].Message, "virsh resume db")
}

func TestAGuestsRebootIsWrittenAndThoseOfALoopSeldom(t *testing.T) {
	h := hostWith(t, "running")
	rec := server(t, h, manifest.Status{Phase: manifest.PhaseRunning})
	reboot := func() manifest.Record {
		require.NoError(t, h.news(t.Context(), libvirtx.DomainEvent{Type: libvirtx.EventRebooted, Name: "db", UUID: manifest.DomainUUID(rec.Metadata.UID)}))
		got, err := h.store.Get(t.Context(), manifest.KindServer, "db")
		require.NoError(t, err)
		return got
	}
	first := reboot()
	require.Equal(t, manifest.PhaseRunning, first.Status.Phase)
	require.NotNil(t, first.Status.RebootedAt)
	require.WithinDuration(t, time.Now(), *first.Status.RebootedAt, patience)
	require.Equal(t, first.Metadata.ResourceVersion, reboot().Metadata.ResourceVersion, "a guest in a loop does not fill the store")
}
