package etcdstate

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
)

// Create writes a record that must not exist. The same uid already there is success and
// gives what is there: an answer that was lost on the way. Another: errs.ErrExists, permanent.
func (s *Store) Create(ctx context.Context, rec manifest.Record) (manifest.Record, error) {
	name := rec.Metadata.Name
	key, err := s.recordKey(rec.Kind, name)
	if err != nil {
		return manifest.Record{}, err
	}
	rec = bounded(rec)
	value, err := encodeRecord(rec)
	if err != nil {
		return manifest.Record{}, err
	}
	resp, err := s.client.Txn(ctx).If(Absent(key)).Then(clientv3.OpPut(key, value)).Else(clientv3.OpGet(key)).Commit()
	if err != nil {
		return manifest.Record{}, Translate(ctx, ref(rec.Kind, name), "create record", err)
	}
	if resp.Succeeded {
		rec.Metadata.ResourceVersion = resp.Header.Revision
		return rec, nil
	}
	there, err := decodeRecord(resp.Responses[0].GetResponseRange().Kvs[0])
	if err != nil {
		return manifest.Record{}, err
	}
	if there.Metadata.UID != rec.Metadata.UID || rec.Metadata.UID == "" {
		return manifest.Record{}, errs.NewPermanent(ref(rec.Kind, name), "create record", errs.ErrExists, "")
	}
	return there, nil
}

// Update applies change to a record and writes it, comparing what it was read from; on a
// conflict it reads again and applies change again, so change may run several times and
// must depend on its argument only. Its error is returned and nothing is written.
// Absent: errs.ErrNotFound.
func (s *Store) Update(ctx context.Context, kind manifest.Kind, name string, change func(*manifest.Record) error) (manifest.Record, error) {
	out, err := s.UpdateAll(ctx, kind, []string{name}, func(recs []*manifest.Record) error { return change(recs[0]) })
	if err != nil {
		return manifest.Record{}, err
	}
	return out[0], nil
}

// UpdateAll is Update of several records of a kind in one transaction: all or none.
func (s *Store) UpdateAll(ctx context.Context, kind manifest.Kind, names []string, change func([]*manifest.Record) error) ([]manifest.Record, error) {
	if len(names) == 0 {
		return nil, nil
	}
	object := ref(kind, strings.Join(names, ","))
	var out []manifest.Record
	err := RetryConflict(ctx, object, "update record", func() (bool, error) {
		kvs, err := s.readRecords(ctx, kind, names)
		if err != nil {
			return false, err
		}
		recs, cmps, err := decodeAll(kind, names, kvs)
		if err != nil {
			return false, err
		}
		if err := change(recs); err != nil {
			return false, err
		}
		puts := make([]clientv3.Op, 0, len(recs))
		for i, rec := range recs {
			*rec = bounded(*rec)
			value, err := encodeRecord(*rec)
			if err != nil {
				return false, err
			}
			puts = append(puts, clientv3.OpPut(string(kvs[i].Key), value))
		}
		resp, err := s.client.Txn(ctx).If(cmps...).Then(puts...).Commit()
		if err != nil || !resp.Succeeded {
			return false, Translate(ctx, object, "update record", err)
		}
		out = out[:0]
		for _, rec := range recs {
			rec.Metadata.ResourceVersion = resp.Header.Revision
			out = append(out, *rec)
		}
		return true, nil
	})
	return out, err
}

func decodeAll(kind manifest.Kind, names []string, kvs []*mvccpb.KeyValue) ([]*manifest.Record, []clientv3.Cmp, error) {
	recs, cmps := make([]*manifest.Record, len(kvs)), make([]clientv3.Cmp, len(kvs))
	for i, kv := range kvs {
		if kv == nil {
			return nil, nil, notFound(kind, names[i])
		}
		rec, err := decodeRecord(kv)
		if err != nil {
			return nil, nil, err
		}
		recs[i], cmps[i] = &rec, Unchanged(kv)
	}
	return recs, cmps, nil
}

// Delete removes a record, and remembers that it did (Deleted). Absent is success. Another
// uid under the name: errs.ErrConflict, permanent, and nothing is changed.
func (s *Store) Delete(ctx context.Context, kind manifest.Kind, name, uid string) error {
	key, err := s.recordKey(kind, name)
	if err != nil {
		return err
	}
	return RetryConflict(ctx, ref(kind, name), "delete record", func() (bool, error) {
		kvs, err := s.readRecords(ctx, kind, []string{name})
		if err != nil || kvs[0] == nil {
			return err == nil, err
		}
		rec, err := decodeRecord(kvs[0])
		if err != nil {
			return false, err
		}
		if rec.Metadata.UID != uid {
			return false, errs.NewPermanent(ref(kind, name), "delete record",
				fmt.Errorf("%w: it was made again", errs.ErrConflict), "")
		}
		noted, err := s.noteDeleted(kind, name, uid)
		if err != nil {
			return false, err
		}
		resp, err := s.client.Txn(ctx).If(Unchanged(kvs[0])).Then(append(noted, clientv3.OpDelete(key))...).Commit()
		if errors.Is(err, rpctypes.ErrNoSpace) {
			// A full etcd takes deletions only. That it was deleted is not remembered then.
			resp, err = s.client.Txn(ctx).If(Unchanged(kvs[0])).Then(clientv3.OpDelete(key)).Commit()
		}
		return err == nil && resp.Succeeded, Translate(ctx, ref(kind, name), "delete record", err)
	})
}
