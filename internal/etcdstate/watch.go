package etcdstate

import (
	"context"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"golang.org/x/sync/errgroup"

	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
)

// EventType says what happened.
type EventType string

// Event types.
const (
	// Put: a record was created or changed, or is one of those there at the start.
	Put EventType = "Put"
	// Delete: a record is gone. Record has the kind and metadata last seen of it.
	Delete EventType = "Delete"
	// Synced: all records that were there at the start have been sent. Sent once.
	Synced EventType = "Synced"
)

// Event is one change.
type Event struct {
	Type   EventType
	Record manifest.Record
}

const (
	// eventBuffer lets etcd's stream run ahead of a slow reader a little.
	eventBuffer = 64
	// watchPause is between two tries while etcd is away or has no leader.
	watchPause = 500 * time.Millisecond
)

// Watch sends the current records of a kind ("" is all kinds), then Synced, then every
// change, until ctx ends; then the channel is closed. It goes on after a lost connection,
// a change of leader and a compaction: no change is lost (of several to one record that
// were compacted, the last is sent), and no record is sent again that was not changed.
// The order holds within a kind. The first reading fails here rather than in the channel.
func (s *Store) Watch(ctx context.Context, kind manifest.Kind) (<-chan Event, error) {
	kinds := []manifest.Kind{kind}
	if kind == "" {
		kinds = Kinds()
	}
	out := make(chan Event, eventBuffer)
	var feeds []*feed[manifest.Record]
	for _, k := range kinds {
		folder, ok := folders[k]
		if !ok {
			return nil, errs.NewPermanent(string(k), "watch records", fmt.Errorf("%w kind", errs.ErrInvalid), "")
		}
		f := newFeed(s, s.Key(folder, ""), decodeRecord, onlyMetadata, func(ctx context.Context, t EventType, rec manifest.Record) error {
			return send(ctx, out, Event{Type: t, Record: rec})
		})
		if err := f.list(ctx); err != nil {
			return nil, Translate(ctx, folder, "watch records", err)
		}
		feeds = append(feeds, f)
	}
	go func() {
		defer close(out)
		runFeeds(ctx, feeds, func(ctx context.Context) error { return send(ctx, out, Event{Type: Synced}) })
	}()
	return out, nil
}

// onlyMetadata is what a watch remembers of a record, to tell of its end: the whole of
// 10,000 records for each watcher would be much memory.
func onlyMetadata(rec manifest.Record) manifest.Record {
	return manifest.Record{APIVersion: rec.APIVersion, Kind: rec.Kind, Metadata: rec.Metadata}
}

// HostEvent is a change of a host's lease. After Synced, a host that was not named is away.
type HostEvent struct {
	Type EventType
	Host string
}

// WatchAlive sends the hosts that live, then Synced, then each that comes (Put) or
// vanishes (Delete), as Watch does with records.
func (s *Store) WatchAlive(ctx context.Context) (<-chan HostEvent, error) {
	prefix := s.Key("alive", "")
	out := make(chan HostEvent, eventBuffer)
	host := func(kv *mvccpb.KeyValue) (string, error) { return string(kv.Key[len(prefix):]), nil }
	f := newFeed(s, prefix, host, func(host string) string { return host }, func(ctx context.Context, t EventType, host string) error {
		return send(ctx, out, HostEvent{Type: t, Host: host})
	})
	if err := f.list(ctx); err != nil {
		return nil, Translate(ctx, "hosts", "watch the living", err)
	}
	go func() {
		defer close(out)
		runFeeds(ctx, []*feed[string]{f}, func(ctx context.Context) error { return send(ctx, out, HostEvent{Type: Synced}) })
	}()
	return out, nil
}

// runFeeds sends what the feeds have listed, says that it is all, and follows them until
// ctx ends.
func runFeeds[V any](ctx context.Context, feeds []*feed[V], synced func(context.Context) error) {
	for _, f := range feeds {
		if f.catchUp(ctx) != nil {
			return
		}
	}
	if synced(ctx) != nil {
		return
	}
	var group errgroup.Group
	for _, f := range feeds {
		group.Go(func() error { f.follow(ctx); return nil })
	}
	_ = group.Wait()
}

func send[E any](ctx context.Context, out chan<- E, event E) error {
	select {
	case out <- event:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
