package worker

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/activities/domain"
	"burrow.dev/burrow/activities/network"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
)

// restore brings up again what this host's records say should run: networks first, then
// each server paused, wired, and only then running. libvirt's own autostart would put
// guests on an unfiltered wire (pitfall 67). What runs already is left alone, so it is
// as right after a reboot as after a restart of the worker.
func (h *host) restore(ctx context.Context) error {
	if err := h.networks.Restore(ctx); err != nil {
		// One network that cannot be (a foreign bridge has its name, say) must not keep the
		// others' servers down; Keep tries it again and again.
		h.Log.Error("networks not all restored", slog.Any("error", err))
	}
	servers, err := h.store.List(ctx, manifest.KindServer)
	if err != nil {
		return err
	}
	boot, err := h.firstAfterBoot()
	if err != nil {
		return err
	}
	h.down = nil
	for _, rec := range servers {
		if !h.shouldRun(rec, boot) {
			continue
		}
		if err := h.bringUp(ctx, rec); err != nil {
			h.Log.Error("server not started yet", slog.String("server", rec.Metadata.Name), slog.Any("error", err))
			h.down = append(h.down, rec)
		}
	}
	return h.noteRestored()
}

// restoreAgainEvery is how often a server that should run and could not be started (Open
// vSwitch was late, say) is tried again.
const restoreAgainEvery = 10 * time.Second

// restoreRest brings up what restore could not, again and again, until each runs, is
// somebody else's by now, or ctx ends.
func (h *host) restoreRest(ctx context.Context) {
	tick := time.NewTicker(restoreAgainEvery)
	defer tick.Stop()
	for len(h.down) > 0 {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		h.restoreDown(ctx)
	}
}

// restoreDown tries once more to bring up each server that is still down.
func (h *host) restoreDown(ctx context.Context) {
	h.down = slices.DeleteFunc(h.down, func(was manifest.Record) bool {
		rec, still, err := h.stillStartable(ctx, was)
		if err == nil && still {
			err = h.bringUp(ctx, rec)
		}
		if err != nil {
			h.Log.Error("server not started yet", slog.String("server", was.Metadata.Name), slog.Any("error", err))
		}
		return err == nil
	})
}

// startable reports whether a server on this host may be brought up: nobody stopped it,
// and it is neither being deleted nor failed.
func (h *host) startable(rec manifest.Record) bool {
	if rec.Status.Host != h.Config.Host.Name || rec.Status.PowerOff || len(rec.Status.Disks) == 0 {
		return false
	}
	switch rec.Status.LastPhase() {
	case manifest.PhaseProvisioning, manifest.PhaseHeld, manifest.PhaseRunning, manifest.PhaseUnknown, manifest.PhaseStopped:
		return true
	}
	return false
}

// stillStartable reads again the record of a server that was to be brought up; still: it is
// the same server, and startable.
func (h *host) stillStartable(ctx context.Context, was manifest.Record) (rec manifest.Record, still bool, err error) {
	rec, err = h.store.Get(ctx, manifest.KindServer, was.Metadata.Name)
	if errors.Is(err, errs.ErrNotFound) {
		return rec, false, nil
	}
	return rec, err == nil && rec.Metadata.UID == was.Metadata.UID && h.startable(rec), err
}

// shouldRun reports whether a server belongs on this host and is to be brought up. One that
// is still being built counts as soon as its record knows its disks and ports. One that
// was stopped on purpose, or powered itself off, stays off; but a boot of the host starts
// every server with autostart that nobody stopped, since the way down stops them all.
func (h *host) shouldRun(rec manifest.Record, boot bool) bool {
	if !h.startable(rec) {
		return false
	}
	switch rec.Status.LastPhase() {
	case manifest.PhaseRunning, manifest.PhaseUnknown:
		return !boot || autostart(rec)
	case manifest.PhaseStopped:
		return boot && autostart(rec)
	}
	return true
}

func autostart(rec manifest.Record) bool {
	var spec manifest.ServerSpec
	return json.Unmarshal(rec.Spec, &spec) == nil && spec.Autostart
}

// firstAfterBoot reports whether no restore has ended since the host booted.
func (h *host) firstAfterBoot() (bool, error) {
	id, err := os.ReadFile(bootIDFile)
	if err != nil {
		return false, err
	}
	last, err := os.ReadFile(h.restoredFile())
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return false, err
	}
	return string(last) != string(id), nil
}

// noteRestored writes down in which boot the servers were brought up.
func (h *host) noteRestored() error {
	id, err := os.ReadFile(bootIDFile)
	if err != nil {
		return err
	}
	return os.WriteFile(h.restoredFile(), id, 0o600)
}

func (h *host) restoredFile() string { return filepath.Join(h.Config.DataDir, "restored-boot") }

// bootIDFile changes with every boot of the machine.
const bootIDFile = "/proc/sys/kernel/random/boot_id"

// bringUp starts one server that is off. One that an operation has not defined yet, or
// keeps paused, is that operation's.
func (h *host) bringUp(ctx context.Context, rec manifest.Record) error {
	state, reason, err := h.domains.State(ctx, rec.Metadata.UID)
	building := !rec.Status.Phase.Settled()
	switch {
	case err != nil && building:
		return nil // not defined yet
	case err != nil:
		return err
	case state == "running", state == "paused" && (building || reason == "ioerror"):
		return nil
	}
	var spec manifest.ServerSpec
	if err := json.Unmarshal(rec.Spec, &spec); err != nil {
		return err
	}
	server := activities.Server{Name: rec.Metadata.Name, UID: rec.Metadata.UID}
	h.Log.Info("starting a server that should run", slog.String("server", server.Name), slog.String("state", state))
	if _, err := h.networks.Ensure(ctx, network.EnsureIn{Server: server, Ports: rec.Status.Ports}); err != nil {
		return err
	}
	// That may have waited long for Open vSwitch, and somebody stopped or deleted it meanwhile.
	if _, still, err := h.stillStartable(ctx, rec); err != nil || !still {
		return err
	}
	if _, err := h.domains.Start(ctx, domain.StartOf(rec, spec)); err != nil {
		return err
	}
	wired, err := h.networks.Wire(ctx, network.WireIn{Server: server, Ports: rec.Status.Ports})
	if err != nil {
		return err
	}
	resumed, err := h.domains.Resume(ctx, domain.ResumeIn{Server: server})
	if err == nil && (wired.Off || resumed.Off) {
		err = errs.NewTransient(server.Ref(), "start", errs.Reason("it went off before it could run"))
	}
	return err
}
