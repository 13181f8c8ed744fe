package etcdstate

import (
	"context"
	"errors"
	"slices"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// feed follows one prefix whose values are V. seen is what the reader was told; changed
// and gone are the keys that differed from it at revision listed; next is the first
// revision that was not looked at.
type feed[V any] struct {
	store  *Store
	prefix string
	decode func(*mvccpb.KeyValue) (V, error)
	keep   func(V) V // what is remembered of a value, and sent when it is gone
	tell   func(context.Context, EventType, V) error

	seen          map[string]known[V]
	changed, gone []string
	listed, next  int64
}

// known is a value as the reader has it.
type known[V any] struct {
	revision int64
	value    V
}

func newFeed[V any](s *Store, prefix string, decode func(*mvccpb.KeyValue) (V, error), keep func(V) V, tell func(context.Context, EventType, V) error) *feed[V] {
	return &feed[V]{store: s, prefix: prefix, decode: decode, keep: keep, tell: tell, seen: map[string]known[V]{}}
}

// list compares the revisions of all keys with seen: the start, and what to do after a
// compaction. No value is read.
func (f *feed[V]) list(ctx context.Context) error {
	there := map[string]bool{}
	f.changed, f.gone = nil, nil
	rev, err := f.store.eachPage(ctx, f.prefix, 0, keysPage, func(kv *mvccpb.KeyValue) error {
		key := string(kv.Key)
		there[key] = true
		if f.seen[key].revision < kv.ModRevision {
			f.changed = append(f.changed, key)
		}
		return nil
	}, clientv3.WithKeysOnly())
	if err != nil {
		return err
	}
	for key := range f.seen {
		if !there[key] {
			f.gone = append(f.gone, key)
		}
	}
	f.listed = rev
	return nil
}

// catchUp tells what list has found. When etcd goes away meanwhile, or a reader was so slow
// that it has forgotten that revision, it lists again.
func (f *feed[V]) catchUp(ctx context.Context) error {
	for {
		err := f.tellListed(ctx)
		if err == nil {
			return nil
		}
		f.store.log.Debug("records of a watch are listed again", "prefix", f.prefix, "revision", f.listed, "error", err)
		for err != nil {
			if err := wait(ctx, watchPause); err != nil {
				return err
			}
			err = f.list(ctx)
		}
	}
}

// tellListed reads a page of values when the one before has been told.
func (f *feed[V]) tellListed(ctx context.Context) error {
	for chunk := range slices.Chunk(f.changed, MaxOps) {
		kvs, err := f.store.readAt(ctx, chunk, f.listed)
		if err != nil {
			return err
		}
		for _, kv := range kvs {
			if err := f.put(ctx, kv); err != nil {
				return err
			}
		}
	}
	for _, key := range f.gone {
		if err := f.remove(ctx, key); err != nil {
			return err
		}
	}
	f.changed, f.gone, f.next = nil, nil, f.listed+1
	return nil
}

// put tells of a value unless the reader has it. What cannot be decoded is logged and left
// out: one bad record must not end the watch of all others.
func (f *feed[V]) put(ctx context.Context, kv *mvccpb.KeyValue) error {
	key := string(kv.Key)
	if f.seen[key].revision >= kv.ModRevision {
		return nil
	}
	value, err := f.decode(kv)
	if err != nil {
		f.store.log.Error("record left out of a watch", "key", key, "error", err)
		return nil
	}
	if err := f.tell(ctx, Put, value); err != nil {
		return err
	}
	f.seen[key] = known[V]{kv.ModRevision, f.keep(value)}
	return nil
}

func (f *feed[V]) remove(ctx context.Context, key string) error {
	was, ok := f.seen[key]
	if !ok {
		return nil
	}
	if err := f.tell(ctx, Delete, was.value); err != nil {
		return err
	}
	delete(f.seen, key)
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
			if err = f.list(ctx); err == nil {
				err = f.catchUp(ctx)
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
			var err error
			if event.Type == clientv3.EventTypeDelete {
				err = f.remove(ctx, string(event.Kv.Key))
			} else {
				err = f.put(ctx, event.Kv)
			}
			if err != nil {
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
