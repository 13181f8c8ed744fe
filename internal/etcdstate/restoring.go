package etcdstate

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"burrow.dev/burrow/internal/errs"
)

const (
	// restoringKey is there from before a restore changes anything until it is whole. While
	// it is there, what is below the prefix is no world to work on.
	restoringKey = "restoring"
	// wipePage is how many keys are deleted by one request.
	wipePage = 5000
	// leaseWait is how long the keys of killed processes are waited for after their leases:
	// etcd deletes them every half a second.
	leaseWait  = 2 * time.Second
	leasePause = 200 * time.Millisecond
)

// restoring is the value of the marker.
type restoring struct {
	// ID is of one run of restore: a second one takes over, and the first can write no more.
	ID    string    `json:"id"`
	Since time.Time `json:"since"`
}

// Interrupted is errs.ErrBusy while a restore has not ended, whoever runs it; nil otherwise.
func (s *Store) Interrupted(ctx context.Context) error {
	resp, err := s.client.Get(ctx, s.Key(restoringKey))
	if err != nil {
		return Translate(ctx, "etcd", "look for a restore", err)
	}
	if len(resp.Kvs) == 0 {
		return nil
	}
	var m restoring
	_ = json.Unmarshal(resp.Kvs[0].Value, &m) // what it says is for people only
	return errs.NewOperator("records in etcd", "use", errs.Reason("%w: a restore began %s and has not ended", errs.ErrBusy, m.Since.Format(time.RFC3339)),
		"if it was interrupted, run it again: burrow restore FILE")
}

// AwaitRestore returns Interrupted's error when a restore begins, or nil when ctx ends.
func (s *Store) AwaitRestore(ctx context.Context) error {
	for ctx.Err() == nil {
		watched, cancel := context.WithCancel(ctx)
		changes := s.client.Watch(clientv3.WithRequireLeader(watched), s.Key(restoringKey))
		// Asked after the watch is ordered: nothing falls between.
		err := s.Interrupted(ctx)
		for err == nil || !errors.Is(err, errs.ErrBusy) {
			if _, open := <-changes; !open {
				break
			}
			err = s.Interrupted(ctx)
		}
		cancel()
		if errors.Is(err, errs.ErrBusy) {
			return err
		}
		_ = wait(ctx, watchPause)
	}
	return nil
}

// Restore is one run of restore: from Begin on, what is below the prefix is its own until
// Finish. Every write compares that it still is.
type Restore struct {
	store  *Store
	marker string
	// quarantine of addresses that were in quarantine when the backup was made.
	quarantine time.Duration
	count      int
	sum        hash.Hash
}

// BeginRestore takes what is below the prefix for a restore and deletes it. Keys there:
// refused (errs.ErrExists) unless replace is true or an earlier restore was interrupted.
// A worker that lives: errs.ErrBusy.
func (s *Store) BeginRestore(ctx context.Context, replace bool, quarantine time.Duration) (*Restore, error) {
	if err := s.awaitNobody(ctx); err != nil {
		return nil, err
	}
	value, err := json.Marshal(restoring{ID: rand.Text(), Since: time.Now().UTC()})
	if err != nil {
		return nil, err
	}
	r := &Restore{store: s, marker: string(value), quarantine: quarantine, sum: sha256.New()}
	key := s.Key(restoringKey)
	resp, err := s.client.Get(ctx, key)
	if err != nil {
		return nil, Translate(ctx, "etcd", "begin restore", err)
	}
	free := []clientv3.Cmp{clientv3.Compare(clientv3.CreateRevision(s.prefix).WithPrefix(), "=", 0)}
	switch {
	case len(resp.Kvs) > 0: // of an interrupted restore: nobody's world
		free = []clientv3.Cmp{Unchanged(resp.Kvs[0])}
	case replace:
		free = []clientv3.Cmp{Absent(key)}
	}
	done, err := s.client.Txn(ctx).If(free...).Then(clientv3.OpPut(key, r.marker)).Commit()
	switch {
	case err != nil:
		return nil, Translate(ctx, "etcd", "begin restore", err)
	case !done.Succeeded && len(resp.Kvs) == 0 && !replace:
		return nil, errs.NewPermanent("records in etcd below "+s.prefix, "restore", errs.Reason("%w: there is a world already", errs.ErrExists),
			"make a backup of it first if you need it; then restore with --replace")
	case !done.Succeeded:
		return nil, errs.NewPermanent("records in etcd", "restore", errs.Reason("%w: another restore has just begun", errs.ErrBusy), "wait for it")
	}
	return r, r.wipe(ctx)
}

// awaitNobody waits a moment until no key of a living process is there.
func (s *Store) awaitNobody(ctx context.Context) error {
	deadline := time.Now().Add(max(s.alive, time.Duration(s.locks.ttl)*time.Second) + leaseWait)
	for {
		var living []string
		_, err := s.EachPage(ctx, s.prefix, func(kv *mvccpb.KeyValue) error {
			key := strings.TrimPrefix(string(kv.Key), s.prefix)
			if kv.Lease != 0 && !IsQuarantine(key) {
				living = append(living, key)
			}
			return nil
		})
		if err != nil {
			return Translate(ctx, "etcd", "look for living workers", err)
		}
		if len(living) == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return errs.NewPermanent("records in etcd", "restore", errs.Reason("%w: workers are at work (%s)", errs.ErrBusy, strings.Join(living[:min(3, len(living))], ", ")),
				"stop the worker on every machine first (systemctl stop burrow-worker), then restore")
		}
		if err := wait(ctx, leasePause); err != nil {
			return err
		}
	}
}

// wipe deletes everything below the prefix but the marker, page by page: a kill in between
// leaves the marker.
func (r *Restore) wipe(ctx context.Context) error {
	key := r.store.Key(restoringKey)
	for _, span := range [][2]string{{r.store.prefix, key}, {key + "\x00", clientv3.GetPrefixRangeEnd(r.store.prefix)}} {
		for {
			resp, err := r.store.client.Get(ctx, span[0], clientv3.WithRange(span[1]), clientv3.WithKeysOnly(), clientv3.WithLimit(wipePage))
			if err != nil {
				return Translate(ctx, "etcd", "delete the old records", err)
			}
			if len(resp.Kvs) == 0 {
				break
			}
			last := string(resp.Kvs[len(resp.Kvs)-1].Key) + "\x00"
			if err := r.commit(ctx, "delete the old records", clientv3.OpDelete(span[0], clientv3.WithRange(last))); err != nil {
				return err
			}
		}
	}
	return nil
}

// commit runs operations while the prefix is this restore's.
func (r *Restore) commit(ctx context.Context, action string, ops ...clientv3.Op) error {
	resp, err := r.store.client.Txn(ctx).
		If(clientv3.Compare(clientv3.Value(r.store.Key(restoringKey)), "=", r.marker)).Then(ops...).Commit()
	if err != nil {
		return Translate(ctx, "etcd", action, err)
	}
	if !resp.Succeeded {
		return errs.NewPermanent("records in etcd", action, errs.Reason("%w: another restore has taken over", errs.ErrBusy), "let one of them end")
	}
	return nil
}

// Note tells of a key that belongs to the restored world; all of them, in the order of
// keys, before Finish, which compares them with what is there.
func (r *Restore) Note(k Kept) {
	if !k.Quarantined {
		r.count++
		noteKey(r.sum, k.Key, k.Value)
	}
}

func noteKey(sum hash.Hash, key string, value []byte) {
	fmt.Fprintf(sum, "%d %s %d ", len(key), key, len(value))
	sum.Write(value)
}

// Put writes keys in one transaction; at most MaxOps. Addresses in quarantine get the whole
// of it again.
func (r *Restore) Put(ctx context.Context, keys []Kept) error {
	ops := make([]clientv3.Op, 0, len(keys))
	var lease clientv3.LeaseID // of this transaction: the quarantine may be shorter than the restore
	for _, k := range keys {
		var opts []clientv3.OpOption
		if k.Quarantined {
			if r.quarantine <= 0 {
				continue
			}
			if lease == 0 {
				granted, err := r.store.client.Grant(ctx, int64((r.quarantine+time.Second-1)/time.Second))
				if err != nil {
					return Translate(ctx, "etcd", "take the lease of the quarantine", err)
				}
				lease = granted.ID
			}
			opts = append(opts, clientv3.WithLease(lease))
		}
		ops = append(ops, clientv3.OpPut(r.store.Key(k.Key), string(k.Value), opts...))
	}
	if len(ops) == 0 {
		return nil
	}
	return r.commit(ctx, "write records", ops...)
}

// Finish reads all back, compares it with what Note was told, and gives the prefix free.
// Something else there (a worker that was not stopped wrote): errs.ErrConflict, and the
// restore counts as interrupted.
func (r *Restore) Finish(ctx context.Context) error {
	count, sum := 0, sha256.New()
	_, err := r.store.EachPage(ctx, r.store.prefix, func(kv *mvccpb.KeyValue) error {
		key := strings.TrimPrefix(string(kv.Key), r.store.prefix)
		if key != restoringKey && !IsQuarantine(key) {
			count++
			noteKey(sum, key, kv.Value)
		}
		return nil
	})
	if err != nil {
		return Translate(ctx, "etcd", "read the restored records back", err)
	}
	if got, want := hex.EncodeToString(sum.Sum(nil)), hex.EncodeToString(r.sum.Sum(nil)); got != want {
		return errs.NewPermanent("records in etcd", "compare with the backup",
			errs.Reason("%w: %d keys are there, %d were restored: something else writes below %s", errs.ErrConflict, count, r.count, r.store.prefix),
			"stop every worker, then run the restore again")
	}
	return r.commit(ctx, "end restore", clientv3.OpDelete(r.store.Key(restoringKey)))
}
