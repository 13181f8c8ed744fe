package etcdstate

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
)

// DeletedKept is how long the store remembers that a record was deleted. What turns up of
// a resource later than that needs a person's word to be removed.
const DeletedKept = 90 * 24 * time.Hour

// deletedFolder holds deleted/<uid>: the proof that a resource was deleted on purpose. A
// record that is merely missing (etcd was restored from an older copy) has none.
const deletedFolder = "deleted"

// Deleted says what a uid was, and when its record was deleted.
type Deleted struct {
	Kind manifest.Kind `json:"kind"`
	Name string        `json:"name"`
	At   time.Time     `json:"at"`
}

// noteDeleted is the part of a record's deletion that remembers it.
func (s *Store) noteDeleted(kind manifest.Kind, name, uid string) ([]clientv3.Op, error) {
	if uid == "" || kind == manifest.KindHost {
		return nil, nil
	}
	value, err := encode(ref(kind, name), Deleted{Kind: kind, Name: name, At: time.Now().UTC()})
	if err != nil {
		return nil, err
	}
	return []clientv3.Op{clientv3.OpPut(s.Key(deletedFolder, uid), value)}, nil
}

// NoteDeleted remembers that nothing is left of a uid although its record stays: a build
// that failed and was undone.
func (s *Store) NoteDeleted(ctx context.Context, kind manifest.Kind, name, uid string) error {
	ops, err := s.noteDeleted(kind, name, uid)
	if err != nil || len(ops) == 0 {
		return err
	}
	_, err = s.client.Txn(ctx).Then(ops...).Commit()
	return Translate(ctx, ref(kind, name), "note that nothing is left", err)
}

// Deleted lists what was deleted within DeletedKept, by uid.
func (s *Store) Deleted(ctx context.Context) (map[string]Deleted, error) {
	prefix := s.Key(deletedFolder, "")
	out := map[string]Deleted{}
	_, err := s.EachPage(ctx, prefix, func(kv *mvccpb.KeyValue) error {
		var d Deleted
		if err := json.Unmarshal(kv.Value, &d); err != nil {
			return errs.NewOperator(string(kv.Key), "decode", err, "delete the key")
		}
		out[strings.TrimPrefix(string(kv.Key), prefix)] = d
		return nil
	})
	return out, Translate(ctx, "deleted resources", "list", err)
}

// ForgetDeleted removes what is older than DeletedKept, and of which no lost host owes
// anything: that is proof until it is paid.
func (s *Store) ForgetDeleted(ctx context.Context, now time.Time) error {
	all, err := s.Deleted(ctx)
	if err != nil {
		return err
	}
	owed, err := s.Owing(ctx)
	if err != nil {
		return err
	}
	for uid, d := range all {
		if now.Sub(d.At) < DeletedKept || owed[uid] != "" {
			continue
		}
		if _, err := s.client.Delete(ctx, s.Key(deletedFolder, uid)); err != nil {
			return Translate(ctx, "deleted resources", "forget", err)
		}
	}
	return nil
}
