package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	ucli "github.com/urfave/cli/v2"

	"burrow.dev/burrow/cli/render"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/gateway"
	"burrow.dev/burrow/internal/plaintext"
	"burrow.dev/burrow/manifest"
)

// reconnectEvery is how often a watch asks for a lost gateway: a worker that restarts is
// back within seconds.
const reconnectEvery = time.Second

// watchRecords prints what there is and every change, until Ctrl-C, or nobody reads it. A gateway that goes
// away and comes back does not end it. It closes gw.
func watchRecords(c *ucli.Context, gw *gateway.Client, q query) error {
	w := &watcher{c: c, q: q, seen: map[Ref]seen{}}
	ctx, stop := whileRead(c.Context, c.App.Writer)
	defer stop()
	for {
		err := w.follow(ctx, gw)
		_ = gw.Close() // a watch of days meets many restarts
		if ctx.Err() != nil {
			return &ExitError{Code: ExitStopped}
		}
		if !errors.Is(err, errs.ErrUnavailable) {
			return err
		}
		text, _ := words(err)
		fmt.Fprintf(c.App.ErrWriter, "%s; waiting for it to come back\n", text)
		if gw, err = w.reconnect(ctx); err != nil {
			return err
		}
	}
}

// watcher prints events; it remembers what it has shown, so that after a reconnect only
// changes are printed.
type watcher struct {
	c       *ucli.Context
	q       query
	seen    map[Ref]seen
	initial []manifest.Record
	synced  bool // the first list has been printed
}

type seen struct {
	version int64
	fresh   bool // came since the latest (re)connect
}

func (w *watcher) follow(ctx context.Context, gw *gateway.Client) error {
	kind, name := manifest.Kind(""), ""
	if len(w.q.kinds) == 1 {
		kind = w.q.kinds[0]
	}
	if len(w.q.names) == 1 {
		name = w.q.names[0]
	}
	for ref, s := range w.seen {
		w.seen[ref] = seen{version: s.version}
	}
	return gw.Watch(ctx, kind, name, w.event)
}

func (w *watcher) event(e gateway.Event) error {
	if e.Type == gateway.Synced {
		return w.listed()
	}
	if !w.q.matches(e.Record) {
		return nil
	}
	ref := Ref{e.Record.Kind, e.Record.Metadata.Name}
	old, known := w.seen[ref]
	if e.Type == gateway.Delete {
		delete(w.seen, ref)
		if !known || !w.synced { // never shown: it came and went between two events, or is in no list yet
			return nil
		}
		return w.print(e.Record, true)
	}
	w.seen[ref] = seen{version: e.Record.Metadata.ResourceVersion, fresh: true}
	switch {
	case known && old.version == e.Record.Metadata.ResourceVersion:
		return nil
	case !w.synced:
		w.initial = append(w.initial, e.Record)
		return nil
	}
	return w.print(e.Record, false)
}

// listed ends the list of what there is: the first one is printed as a table, and after
// a reconnect what is no longer there was deleted meanwhile.
func (w *watcher) listed() error {
	if !w.synced {
		w.synced = true
		w.initial = slices.DeleteFunc(w.initial, w.outdated)
		if output(w.c) != "table" && output(w.c) != "wide" {
			for _, rec := range w.initial {
				if err := w.print(rec, false); err != nil {
					return err
				}
			}
			return nil
		}
		return printTables(w.c.App.Writer, w.q, w.initial, output(w.c) == "wide", time.Now())
	}
	for ref, s := range w.seen {
		if !s.fresh {
			delete(w.seen, ref)
			gone := manifest.Record{APIVersion: manifest.APIVersion, Kind: ref.Kind}
			gone.Metadata.Name = ref.Name
			if err := w.print(gone, true); err != nil {
				return err
			}
		}
	}
	return nil
}

// outdated reports whether the first list has something newer of a record, or no longer has
// it: the gateway was lost and came back before the list was whole.
func (w *watcher) outdated(rec manifest.Record) bool {
	now := w.seen[Ref{rec.Kind, rec.Metadata.Name}]
	return !now.fresh || now.version != rec.Metadata.ResourceVersion
}

func (w *watcher) print(rec manifest.Record, deleted bool) error {
	out := w.c.App.Writer
	ref := manifest.Ref(rec.Kind, rec.Metadata.Name)
	switch output(w.c) {
	case "json":
		return json.NewEncoder(plaintext.JSONWriter(out)).Encode(change{Deleted: deleted, Record: rec})
	case "yaml":
		if _, err := fmt.Fprintln(out, "---"); err != nil {
			return err
		}
		return printYAML(out, change{Deleted: deleted, Record: rec})
	case "name":
		_, err := fmt.Fprintln(out, render.Clean(ref))
		return err
	}
	if deleted {
		_, err := fmt.Fprintf(out, "%s is gone\n", ref)
		return err
	}
	row := tableOf(rec.Kind, output(w.c) == "wide").row(rec, time.Now())
	if len(w.q.kinds) > 1 {
		row[0] = ref
	}
	return render.Table(out, nil, [][]string{row})
}

// change is one event of a watch as a document.
type change struct {
	Deleted bool            `json:"deleted,omitempty"`
	Record  manifest.Record `json:"record"`
}

func (w *watcher) reconnect(ctx context.Context) (*gateway.Client, error) {
	tick := time.NewTicker(reconnectEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil, &ExitError{Code: ExitStopped}
		case <-tick.C:
		}
		gw, err := openGateway(w.c)
		if err == nil {
			return gw, nil
		}
		if !errors.Is(err, errs.ErrUnavailable) && !errors.Is(err, context.Canceled) {
			return nil, err
		}
	}
}
