package etcdstate

import (
	"context"
	"errors"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// feed follows one prefix whose values are V. seen is what the reader was told; pending
// is what it is not told yet; next is the first revision that was not looked at.
type feed[V any] struct {
	store  *Store
	prefix string
	decode func(*mvccpb.KeyValue) (V, error)
	keep   func(V) V // what is remembered of a value, and sent when it is gone
	tell   func(context.Context, EventType, V) error

	seen    map[string]known[V]
	pending []change[V]
	next    int64
}

// known is a value as the reader has it.
type known[V any] struct {
	revision int64
	value    V
}

// change is what the reader is not told yet. A Put is decoded when it is told: waiting,
// it is as small as in etcd.
type change[V any] struct {
	kind EventType
	key  string
	kv   *mvccpb.KeyValue // of a Put
	gone V                // of a Delete
}

func newFeed[V any](s *Store, prefix string, decode func(*mvccpb.KeyValue) (V, error), keep func(V) V, tell func(context.Context, EventType, V) error) *feed[V] {
	return &feed[V]{store: s, prefix: prefix, decode: decode, keep: keep, tell: tell, seen: map[string]known[V]{}}
}

// read compares all values with seen: the start, and what to do after a compaction.
func (f *feed[V]) read(ctx context.Context) error {
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

// put notes a value unless the reader has it.
func (f *feed[V]) put(kv *mvccpb.KeyValue) {
	key := string(kv.Key)
	if f.seen[key].revision < kv.ModRevision {
		f.pending = append(f.pending, change[V]{kind: Put, key: key, kv: kv})
	}
}

func (f *feed[V]) remove(key string) {
	if was, ok := f.seen[key]; ok {
		f.pending = append(f.pending, change[V]{kind: Delete, key: key, gone: was.value})
	}
}

// flush tells what is pending, and marks it seen as it is told.
func (f *feed[V]) flush(ctx context.Context) error {
	for i, c := range f.pending {
		if err := f.pass(ctx, c); err != nil {
			return err
		}
		f.pending[i] = change[V]{} // its memory is free while a slow reader takes the rest
	}
	f.pending = nil
	return nil
}

// pass tells of one change. What cannot be decoded is logged and left out: one bad record
// must not end the watch of all others.
func (f *feed[V]) pass(ctx context.Context, c change[V]) error {
	if c.kind == Delete {
		if err := f.tell(ctx, Delete, c.gone); err != nil {
			return err
		}
		delete(f.seen, c.key)
		return nil
	}
	value, err := f.decode(c.kv)
	if err != nil {
		f.store.log.Error("record left out of a watch", "key", c.key, "error", err)
		return nil
	}
	if err := f.tell(ctx, Put, value); err != nil {
		return err
	}
	f.seen[c.key] = known[V]{c.kv.ModRevision, f.keep(value)}
	return nil
}

// follow watches from next until ctx ends.
func (f *feed[V]) follow(ctx context.Context) {
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
func (f *feed[V]) stream(ctx context.Context) error {
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
