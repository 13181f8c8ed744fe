package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"golang.org/x/sync/errgroup"

	"burrow.dev/burrow/activities/lost"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/etcdstate"
	"burrow.dev/burrow/manifest"
)

// controlLeader is the leadership that one of the control workers has.
const controlLeader = "control"

// loseAtOnce is how many records of lost hosts are written side by side: a host's hundreds
// of servers are Unknown within a second, and etcd has time for others.
const loseAtOnce = 16

// candidate names this control worker among those that would lead.
func candidate(hostName string) string { return fmt.Sprintf("%s/%d", hostName, os.Getpid()) }

// liveness is what the leader does: it marks what is on hosts whose worker does not
// answer. It holds no truth of its own. Whatever it missed while nobody led, it sees at
// the start, and whatever it could not write, the watch brings again.
//
//	alive/ ──────┐
//	hosts/ ──────┼─▶ a settled record on a host without a lease ─▶ Unknown, since when, what to do
//	servers/ ────┘
//
// The way back is the host's: only it knows how its guests are.
type liveness struct {
	store *etcdstate.Store
	term  *etcdstate.Term
	log   *slog.Logger

	living  map[string]bool
	away    map[string]time.Time       // hosts without a lease, since when that is known
	hosts   map[string]manifest.Record // by name
	servers map[string]string          // the host of each settled server, by its name
}

// watchHosts marks what is on hosts that vanish, until ctx ends or a watch does.
func watchHosts(ctx context.Context, store *etcdstate.Store, term *etcdstate.Term, log *slog.Logger) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	leases, err := store.WatchAlive(ctx)
	if err != nil {
		return err
	}
	hosts, err := store.Watch(ctx, manifest.KindHost)
	if err != nil {
		return err
	}
	servers, err := store.Watch(ctx, manifest.KindServer)
	if err != nil {
		return err
	}
	l := &liveness{
		store: store, term: term, log: log,
		living: map[string]bool{}, away: map[string]time.Time{}, hosts: map[string]manifest.Record{}, servers: map[string]string{},
	}
	// Leases before hosts before servers: since when a host is away is in its record.
	if err := take(ctx, leases, l.lease, func(e etcdstate.HostEvent) bool { return e.Type == etcdstate.Synced }); err != nil {
		return err
	}
	if err := take(ctx, hosts, l.host, func(e etcdstate.Event) bool { return e.Type == etcdstate.Synced }); err != nil {
		return err
	}
	for {
		select {
		case e, open := <-leases:
			err = handle(ctx, e, open, l.lease)
		case e, open := <-hosts:
			err = handle(ctx, e, open, l.host)
		case e, open := <-servers:
			err = handle(ctx, e, open, l.server)
		}
		if err != nil {
			return err
		}
	}
}

// take handles events until the last that is wanted.
func take[E any](ctx context.Context, events <-chan E, do func(context.Context, E) error, last func(E) bool) error {
	for {
		e, open := <-events
		if err := handle(ctx, e, open, do); err != nil {
			return err
		}
		if last(e) {
			return nil
		}
	}
}

// handle does something with an event, unless the watch has ended, as it does with ctx.
func handle[E any](ctx context.Context, e E, open bool, do func(context.Context, E) error) error {
	if !open {
		return errors.Join(ctx.Err(), errs.NewTransient("hosts", "watch", errs.Reason("%w: the watch ended", errs.ErrUnavailable)))
	}
	return do(ctx, e)
}

// lease takes in that a host lives or vanished.
func (l *liveness) lease(ctx context.Context, e etcdstate.HostEvent) error {
	switch e.Type {
	case etcdstate.Put:
		l.living[e.Host] = true
		delete(l.away, e.Host)
	case etcdstate.Delete:
		delete(l.living, e.Host)
		l.away[e.Host] = now()
		l.log.Warn("host does not answer", slog.String("host", e.Host))
		return l.loseAll(ctx, e.Host)
	}
	return nil
}

// loseAll marks a host that vanished and the servers on it.
func (l *liveness) loseAll(ctx context.Context, host string) error {
	since := l.away[host]
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(loseAtOnce)
	if rec, there := l.hosts[host]; there {
		group.Go(func() error { return l.lose(ctx, rec, since) })
	}
	for name, on := range l.servers {
		if on != host {
			continue
		}
		group.Go(func() error {
			rec, err := l.store.Get(ctx, manifest.KindServer, name)
			if errors.Is(err, errs.ErrNotFound) || err == nil && (rec.Status.Host != host || !losable(rec)) {
				return nil
			}
			if err != nil {
				return err
			}
			return l.lose(ctx, rec, since)
		})
	}
	return group.Wait()
}

// host takes in a host's record as it is now.
func (l *liveness) host(ctx context.Context, e etcdstate.Event) error {
	rec := e.Record
	switch name := rec.Metadata.Name; e.Type {
	case etcdstate.Delete:
		delete(l.hosts, name)
	case etcdstate.Put:
		l.hosts[name] = rec
		if !l.living[name] && rec.Status.Phase == manifest.PhaseReady {
			return l.lose(ctx, rec, l.awaySince(name))
		}
	}
	return nil
}

// server takes in a server's record as it is now.
func (l *liveness) server(ctx context.Context, e etcdstate.Event) error {
	rec := e.Record
	if e.Type == etcdstate.Synced {
		return nil
	}
	if e.Type == etcdstate.Delete || !losable(rec) {
		delete(l.servers, rec.Metadata.Name)
		return nil
	}
	l.servers[rec.Metadata.Name] = rec.Status.Host
	if l.living[rec.Status.Host] {
		return nil
	}
	return l.lose(ctx, rec, l.awaySince(rec.Status.Host))
}

// awaySince says since when a host is away: as this leader saw it, as an earlier one
// wrote it down, or now.
func (l *liveness) awaySince(host string) time.Time {
	if since, noted := l.away[host]; noted {
		return since
	}
	since := now()
	if lost := l.hosts[host].Status.Lost; lost != nil {
		since = lost.Since
	}
	l.away[host] = since
	return since
}

// losable reports whether a server's record says how its guest is, and is no operation's.
// An operation goes on when the host is back, or is cancelled; what it settles is taken
// in when it is written.
func losable(rec manifest.Record) bool {
	switch rec.Status.Phase {
	case manifest.PhaseRunning, manifest.PhaseStopped:
		return rec.Status.Host != "" && rec.Status.Operation == nil
	}
	return false
}

// lose writes into a record that its host is away. Losing against another writer is no
// error: the watch brings what was written.
func (l *liveness) lose(ctx context.Context, rec manifest.Record, since time.Time) error {
	host := rec.Status.Host
	rec.Status.Lose(since, l.message(rec, since))
	_, err := l.term.ReplaceOfLost(ctx, host, rec)
	if errs.ClassOf(err) == errs.Permanent {
		// A record that cannot be written must not end the watch of all others.
		l.log.Error("not marked as lost", slog.String("record", manifest.Ref(rec.Kind, rec.Metadata.Name)), slog.Any("error", err))
		return nil
	}
	return err
}

// message says to people what is known of a record's host, and what to do.
func (l *liveness) message(rec manifest.Record, since time.Time) string {
	host, at := rec.Status.Host, since.Format(time.RFC3339)
	switch declared := l.hosts[host].Status; {
	case rec.Kind != manifest.KindServer:
		return fmt.Sprintf("its worker does not answer since %s; %s", at, lookAt(host))
	case declared.Phase == manifest.PhaseLost:
		return lost.Message(host, rec.Metadata.Name, rec.Status.Phase)
	}
	return fmt.Sprintf("host %s does not answer since %s, when this server was %s; %s. This ends by itself when the host is back",
		host, at, rec.Status.Phase, lookAt(host))
}

// lookAt is the next step for people.
func lookAt(host string) string {
	return fmt.Sprintf("look whether the machine is on and its worker runs: `burrow status` and `burrow doctor` on %s", host)
}

func now() time.Time { return time.Now().UTC().Truncate(time.Second) }
