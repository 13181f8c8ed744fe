package worker

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/etcdstate"
	"burrow.dev/burrow/internal/libvirtx"
	"burrow.dev/burrow/manifest"
)

// follow writes what libvirt tells of this host's guests into their records, so that a
// guest that powers itself off is Stopped for everyone within a second.
func (h *host) follow(ctx context.Context) error {
	for e := range h.libvirt.Events(ctx) {
		if err := h.news(ctx, e); err != nil && ctx.Err() == nil {
			h.Log.Warn("status not written", slog.String("server", e.Name), slog.Any("error", err))
		}
	}
	return ctx.Err()
}

// news writes what one piece of news is about.
func (h *host) news(ctx context.Context, e libvirtx.DomainEvent) error {
	switch e.Type {
	case libvirtx.EventConnected:
		return h.recheck(ctx)
	case libvirtx.EventRebooted:
		return h.rebooted(ctx, e.UUID, e.Name)
	}
	return h.observed(ctx, e.UUID, e.Name)
}

// rebootsApart is the least time between two reboots that are written: a guest that
// restarts itself in a loop, several times a second, must not fill the store.
const rebootsApart = 5 * time.Second

// rebooted writes when a guest restarted itself: it runs before and after, so its state
// says nothing of it. During an operation it is part of that.
func (h *host) rebooted(ctx context.Context, uuid, name string) error {
	_, err := h.store.Update(ctx, manifest.KindServer, name, func(r *manifest.Record) error {
		last, now := r.Status.RebootedAt, time.Now().UTC()
		if manifest.DomainUUID(r.Metadata.UID) != uuid || r.Status.Phase != manifest.PhaseRunning || last != nil && now.Sub(*last).Abs() < rebootsApart {
			return errNoNews
		}
		r.Status.RebootedAt = &now
		return nil
	})
	if errors.Is(err, errNoNews) || errors.Is(err, errs.ErrNotFound) {
		return nil
	}
	return err
}

// errNoNews ends an update that has nothing to write.
var errNoNews = errors.New("nothing to write")

// watchEvery is how soon the watch of the records is tried again while etcd is away.
const watchEvery = time.Second

// review looks at a guest again whenever its record settles. What libvirt told while an
// operation worked on the server was not written, so the end of the operation may say
// Running of a guest that has powered itself off, or keep what a restart has mended.
func (h *host) review(ctx context.Context) error {
	for ctx.Err() == nil {
		changes, err := h.store.Watch(ctx, manifest.KindServer)
		if err != nil {
			h.Log.Warn("records not watched yet", slog.Any("error", err))
			select {
			case <-ctx.Done():
			case <-time.After(watchEvery):
			}
			continue
		}
		for c := range changes {
			rec := c.Record
			if c.Type != etcdstate.Put || rec.Status.Host != h.Config.Host.Name || rec.Status.Operation != nil {
				continue
			}
			err := h.observed(ctx, manifest.DomainUUID(rec.Metadata.UID), rec.Metadata.Name)
			if err != nil && ctx.Err() == nil {
				h.Log.Warn("status not written", slog.String("server", rec.Metadata.Name), slog.Any("error", err))
			}
		}
	}
	return ctx.Err()
}

// recheck reads the state of every server on this host: news may have been missed.
func (h *host) recheck(ctx context.Context) error {
	servers, err := h.store.List(ctx, manifest.KindServer)
	if err != nil {
		return err
	}
	var failed []error
	for _, rec := range servers {
		if rec.Status.Host == h.Config.Host.Name {
			failed = append(failed, h.observed(ctx, manifest.DomainUUID(rec.Metadata.UID), rec.Metadata.Name))
		}
	}
	return errors.Join(failed...)
}

// observed writes a domain's state, as it is now, into the record of its server. Records
// with an open operation are that operation's.
func (h *host) observed(ctx context.Context, uuid, name string) error {
	rec, err := h.store.Get(ctx, manifest.KindServer, name)
	if errors.Is(err, errs.ErrNotFound) || err == nil && manifest.DomainUUID(rec.Metadata.UID) != uuid {
		return nil // not ours
	}
	if err != nil {
		return err
	}
	state, reason, err := h.domains.State(ctx, rec.Metadata.UID)
	if err != nil && !errors.Is(err, errs.ErrNotFound) {
		return err
	}
	phase, condition := meaning(name, state, reason)
	if !changes(rec.Status, phase, condition) {
		return nil
	}
	if rec.Status.Phase == manifest.PhaseUnknown {
		return h.found(ctx, rec, phase, condition)
	}
	_, err = h.store.Update(ctx, manifest.KindServer, name, func(r *manifest.Record) error {
		if r.Metadata.ResourceVersion != rec.Metadata.ResourceVersion {
			return errMoved
		}
		r.Status.Phase = phase
		r.Status.Conditions = withCondition(r.Status.Conditions, condition)
		return nil
	})
	if errors.Is(err, errMoved) || errors.Is(err, errs.ErrNotFound) {
		return nil // review looks again
	}
	return err
}

// found ends a server's being Unknown. Only a host that has its lease may: a leader would
// mark the server again, and again. settle looks once more when the lease is taken.
func (h *host) found(ctx context.Context, rec manifest.Record, phase manifest.Phase, c manifest.Condition) error {
	rec.Status.Find()
	rec.Status.Phase = phase
	rec.Status.Conditions = withCondition(rec.Status.Conditions, c)
	_, err := h.store.ReplaceOfLiving(ctx, h.Config.Host.Name, rec)
	return err
}

// errMoved ends an update of a record that was written since the guest was looked at.
var errMoved = errors.New("the record has changed")

// meaning says what a domain's state is for its server.
func meaning(name, state, reason string) (manifest.Phase, manifest.Condition) {
	fine := manifest.Condition{Type: manifest.ConditionAttention}
	switch {
	case state == "paused" && reason == "ioerror":
		return manifest.PhaseRunning, manifest.Condition{
			Type: manifest.ConditionAttention, Status: true, Reason: "IOError",
			Message: "the guest is paused by an I/O error: its pool may be full; make room, then `burrow restart " + name + "`",
		}
	case state == "paused" && (reason == "user" || reason == "watchdog"):
		return manifest.PhaseRunning, manifest.Condition{
			Type: manifest.ConditionAttention, Status: true, Reason: "Paused",
			Message: "the guest is paused (" + reason + "), and not by burrow: `virsh resume " + name + "` on its host lets it go on",
		}
	case state == "crashed", state == "shutoff" && reason == "crashed":
		return manifest.PhaseStopped, manifest.Condition{
			Type: manifest.ConditionAttention, Status: true, Reason: "Crashed",
			Message: "the guest ended without shutting down; /var/log/libvirt/qemu/" + name + ".log on its host may say why. `burrow start " + name + "` starts it again",
		}
	case state == "shutoff", state == "":
		return manifest.PhaseStopped, fine
	}
	return manifest.PhaseRunning, fine
}

// changes reports whether a settled status would become another one.
func changes(s manifest.Status, phase manifest.Phase, c manifest.Condition) bool {
	switch s.Phase {
	case manifest.PhaseRunning, manifest.PhaseStopped, manifest.PhaseUnknown:
	default:
		return false
	}
	if s.Phase == manifest.PhaseStopped && phase == s.Phase && !c.Status {
		return false // a crash stays one until the guest runs again, also when libvirtd has forgotten it
	}
	return s.Phase != phase || hasAttention(s) != c.Status
}

func hasAttention(s manifest.Status) bool {
	return slices.ContainsFunc(s.Conditions, func(c manifest.Condition) bool { return c.Type == manifest.ConditionAttention && c.Status })
}

// withCondition replaces the condition of c's type; one that is false is left out.
func withCondition(all []manifest.Condition, c manifest.Condition) []manifest.Condition {
	kept := slices.DeleteFunc(slices.Clone(all), func(o manifest.Condition) bool { return o.Type == c.Type })
	if !c.Status {
		return kept
	}
	c.Since = time.Now().UTC()
	return append(kept, c)
}
