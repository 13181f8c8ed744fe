package etcdstate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
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
	// Delete: a record is gone. Record is the last one seen of it.
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
	var feeds []*feed
	for _, k := range kinds {
		folder, ok := folders[k]
		if !ok {
			return nil, errs.NewPermanent(string(k), "watch records", fmt.Errorf("%w kind", errs.ErrInvalid), "")
		}
		f := &feed{store: s, prefix: s.Key(folder, ""), seen: map[string]manifest.Record{}}
		if err := f.read(ctx); err != nil {
			return nil, Translate(ctx, folder, "watch records", err)
		}
		feeds = append(feeds, f)
	}
	out := make(chan Event, eventBuffer)
	go func() {
		defer close(out)
		s.runFeeds(ctx, feeds, out)
	}()
	return out, nil
}

func (s *Store) runFeeds(ctx context.Context, feeds []*feed, out chan<- Event) {
	for _, f := range feeds {
		f.out = out
		if f.flush(ctx) != nil {
			return
		}
	}
	if send(ctx, out, Event{Type: Synced}) != nil {
		return
	}
	var group errgroup.Group
	for _, f := range feeds {
		group.Go(func() error { f.follow(ctx); return nil })
	}
	_ = group.Wait()
}

// feed follows one prefix. seen is what the reader was told; pending is what it is not
// told yet; next is the first revision that was not looked at.
type feed struct {
	store   *Store
	prefix  string
	out     chan<- Event
	seen    map[string]manifest.Record
	pending []Event
	next    int64
}

// read compares all records with seen: the start, and what to do after a compaction.
func (f *feed) read(ctx context.Context) error {
	there := map[string]bool{}
	rev, err := f.store.EachPage(ctx, f.prefix, func(kv *mvccpb.KeyValue) error {
		there[string(kv.Key)] = true
		f.put(kv)
		return nil
	})
	if err != nil {
		f.pending = nil
		return err
	}
	for key := range f.seen {
		if !there[key] {
			f.remove(key)
		}
	}
	f.next = rev + 1
	return nil
}

// put notes a record unless the reader has it. What cannot be decoded is logged and left
// out: one bad record must not end the watch of all others.
func (f *feed) put(kv *mvccpb.KeyValue) {
	key := string(kv.Key)
	if f.seen[key].Metadata.ResourceVersion >= kv.ModRevision {
		return
	}
	rec, err := decodeRecord(kv)
	if err != nil {
		f.store.log.Error("record left out of a watch", "key", key, "error", err)
		return
	}
	f.pending = append(f.pending, Event{Type: Put, Record: rec})
}

func (f *feed) remove(key string) {
	if rec, ok := f.seen[key]; ok {
		f.pending = append(f.pending, Event{Type: Delete, Record: rec})
	}
}

// flush sends what is pending, and marks it seen as it is sent.
func (f *feed) flush(ctx context.Context) error {
	for _, event := range f.pending {
		if err := send(ctx, f.out, event); err != nil {
			return err
		}
		key, _ := f.store.recordKey(event.Record.Kind, event.Record.Metadata.Name)
		if event.Type == Delete {
			delete(f.seen, key)
		} else {
			f.seen[key] = event.Record
		}
	}
	f.pending = nil
	return nil
}

func send(ctx context.Context, out chan<- Event, event Event) error {
	select {
	case out <- event:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// follow watches from next until ctx ends.
func (f *feed) follow(ctx context.Context) {
	for ctx.Err() == nil {
		err := f.stream(ctx)
		if ctx.Err() != nil {
			return
		}
		f.store.log.Debug("watch starts again", "prefix", f.prefix, "revision", f.next, "error", err)
		if errors.Is(err, rpctypes.ErrCompacted) {
			if err = f.read(ctx); err == nil {
				err = f.flush(ctx)
			}
			if err == nil {
				continue
			}
		}
		if wait(ctx, watchPause) != nil {
			return
		}
	}
}

// stream is one watch, until it breaks. RequireLeader makes it break on a member that is
// cut off from the others, so that the client goes to another one.
func (f *feed) stream(ctx context.Context) error {
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
	defer cancel()
	responses := f.store.client.Watch(ctx, f.prefix, clientv3.WithPrefix(), clientv3.WithRev(f.next), clientv3.WithProgressNotify())
	for resp := range responses {
		if err := resp.Err(); err != nil {
			return err
		}
		for _, event := range resp.Events {
			if event.Type == clientv3.EventTypeDelete {
				f.remove(string(event.Kv.Key))
			} else {
				f.put(event.Kv)
			}
			// One by one: the next event is compared with what this one made seen.
			if err := f.flush(ctx); err != nil {
				return err
			}
		}
		// While a watch catches up, the header's revision runs ahead of the events.
		if n := len(resp.Events); n > 0 {
			f.next = resp.Events[n-1].Kv.ModRevision + 1
		} else if resp.IsProgressNotify() {
			f.next = resp.Header.Revision + 1
		}
	}
	return errors.New("stream ended")
}
