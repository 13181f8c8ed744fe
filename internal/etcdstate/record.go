package etcdstate

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
)

const (
	// MaxValue is the size in bytes that no value reaches: etcd keeps its whole keyspace
	// in memory, so what is big goes to the blob store.
	MaxValue = 64 << 10
	// listPage is how many keys with small values one request reads: bounded memory on both sides.
	listPage = 500
	// recordsPage is how many records one request reads, less than 4 MiB: a page is held for
	// as long as a slow reader takes.
	recordsPage = 64
	// keysPage is how many keys, without values, one request reads.
	keysPage = 5000
)

// folders of the kinds that have records.
var folders = map[manifest.Kind]string{
	manifest.KindServer:        "servers",
	manifest.KindNetwork:       "networks",
	manifest.KindVolume:        "volumes",
	manifest.KindImage:         "images",
	manifest.KindPlaybook:      "playbooks",
	manifest.KindSecurityGroup: "securitygroups",
	manifest.KindHost:          "hosts",
}

// Kinds lists the kinds that have records, in a fixed order.
func Kinds() []manifest.Kind {
	return []manifest.Kind{
		manifest.KindServer, manifest.KindNetwork, manifest.KindVolume, manifest.KindImage,
		manifest.KindPlaybook, manifest.KindSecurityGroup, manifest.KindHost,
	}
}

func (s *Store) recordKey(kind manifest.Kind, name string) (string, error) {
	folder, ok := folders[kind]
	if !ok {
		return "", errs.NewPermanent(string(kind), "find record", fmt.Errorf("%w kind", errs.ErrInvalid), "")
	}
	if name == "" || strings.ContainsAny(name, "/\x00") {
		return "", errs.NewPermanent(ref(kind, name), "find record", fmt.Errorf("%w name", errs.ErrInvalid), "")
	}
	return s.Key(folder, name), nil
}

// ref gives the name users see: "server/db".
func ref(kind manifest.Kind, name string) string { return strings.ToLower(string(kind)) + "/" + name }

// Get reads one record. Absent: errs.ErrNotFound, permanent.
func (s *Store) Get(ctx context.Context, kind manifest.Kind, name string) (manifest.Record, error) {
	recs, err := s.GetMany(ctx, kind, name)
	if err != nil {
		return manifest.Record{}, err
	}
	if len(recs) == 0 {
		return manifest.Record{}, notFound(kind, name)
	}
	return recs[0], nil
}

func notFound(kind manifest.Kind, name string) error {
	return errs.NewPermanent(ref(kind, name), "read record", errs.ErrNotFound, "")
}

// GetMany reads records in one request and one snapshot, in the order asked. Absent ones
// are left out.
func (s *Store) GetMany(ctx context.Context, kind manifest.Kind, names ...string) ([]manifest.Record, error) {
	kvs, err := s.readRecords(ctx, kind, names)
	if err != nil {
		return nil, err
	}
	var out []manifest.Record
	for _, kv := range kvs {
		if kv == nil {
			continue
		}
		rec, err := decodeRecord(kv)
		if err != nil {
			return nil, err
		}
		out = append(out, rec)
	}
	return s.withLiveness(ctx, kind, out)
}

// readRecords gives one key-value a name, nil where absent.
func (s *Store) readRecords(ctx context.Context, kind manifest.Kind, names []string) ([]*mvccpb.KeyValue, error) {
	ops := make([]clientv3.Op, len(names))
	for i, name := range names {
		key, err := s.recordKey(kind, name)
		if err != nil {
			return nil, err
		}
		ops[i] = clientv3.OpGet(key)
	}
	out := make([]*mvccpb.KeyValue, 0, len(names))
	for chunk := range slices.Chunk(ops, MaxOps) {
		resp, err := s.client.Txn(ctx).Then(chunk...).Commit()
		if err != nil {
			return nil, Translate(ctx, ref(kind, strings.Join(names, ",")), "read record", err)
		}
		for _, r := range resp.Responses {
			var kv *mvccpb.KeyValue
			if kvs := r.GetResponseRange().Kvs; len(kvs) > 0 {
				kv = kvs[0]
			}
			out = append(out, kv)
		}
	}
	return out, nil
}

// List reads all records of a kind at one revision, by name. One that cannot be read is a
// record of manifest.PhaseDamaged without a uid: it keeps nobody from the others, and
// whoever asks who owns something must take it for a possible owner.
func (s *Store) List(ctx context.Context, kind manifest.Kind) ([]manifest.Record, error) {
	var out []manifest.Record
	err := s.Each(ctx, kind, func(rec manifest.Record) error { out = append(out, rec); return nil })
	return out, err
}

// Each calls fn with all records of a kind at one revision, by name, damaged ones as List
// has them, and holds a page of them at a time.
func (s *Store) Each(ctx context.Context, kind manifest.Kind, fn func(manifest.Record) error) error {
	folder, ok := folders[kind]
	if !ok {
		return errs.NewPermanent(string(kind), "list records", fmt.Errorf("%w kind", errs.ErrInvalid), "")
	}
	living := func(*manifest.Record) {}
	if kind == manifest.KindHost {
		var err error
		if living, err = s.liveness(ctx); err != nil {
			return err
		}
	}
	_, err := s.eachPage(ctx, s.Key(folder, ""), 0, recordsPage, func(kv *mvccpb.KeyValue) error {
		rec, err := decodeRecord(kv)
		if err != nil {
			return fn(damaged(kind, kv, err))
		}
		living(&rec)
		return fn(rec)
	})
	return Translate(ctx, folder, "list records", err)
}

// EachPage calls fn for every key below prefix, all at the one revision it returns.
func (s *Store) EachPage(ctx context.Context, prefix string, fn func(*mvccpb.KeyValue) error) (int64, error) {
	return s.eachPage(ctx, prefix, 0, listPage, fn)
}

// eachPage is EachPage at a revision, 0 being the newest.
func (s *Store) eachPage(ctx context.Context, prefix string, rev, page int64, fn func(*mvccpb.KeyValue) error, opts ...clientv3.OpOption) (int64, error) {
	from, end := prefix, clientv3.GetPrefixRangeEnd(prefix)
	for {
		resp, err := s.client.Get(ctx, from, append(opts, clientv3.WithRange(end), clientv3.WithLimit(page), clientv3.WithRev(rev))...)
		if err != nil {
			return 0, err
		}
		if rev == 0 {
			rev = resp.Header.Revision
		}
		for _, kv := range resp.Kvs {
			if err := fn(kv); err != nil {
				return 0, err
			}
		}
		if !resp.More || len(resp.Kvs) == 0 {
			return rev, nil
		}
		from = string(resp.Kvs[len(resp.Kvs)-1].Key) + "\x00"
	}
}

// readAt gives the values of at most MaxOps keys as they were at a revision; absent ones
// are left out.
func (s *Store) readAt(ctx context.Context, keys []string, rev int64) ([]*mvccpb.KeyValue, error) {
	ops := make([]clientv3.Op, len(keys))
	for i, key := range keys {
		ops[i] = clientv3.OpGet(key, clientv3.WithRev(rev))
	}
	resp, err := s.client.Txn(ctx).Then(ops...).Commit()
	if err != nil {
		return nil, err
	}
	var out []*mvccpb.KeyValue
	for _, r := range resp.Responses {
		out = append(out, r.GetResponseRange().Kvs...)
	}
	return out, nil
}

// KeysBelow lists the keys in a folder, without the store's prefix, sorted: what a sweep
// and tests hold against what should be there.
func (s *Store) KeysBelow(ctx context.Context, folder string) ([]string, error) {
	var out []string
	_, err := s.EachPage(ctx, s.Key(folder, ""), func(kv *mvccpb.KeyValue) error {
		out = append(out, strings.TrimPrefix(string(kv.Key), s.prefix))
		return nil
	})
	return out, Translate(ctx, folder, "list keys", err)
}

// damagedNext is what a person can do about a record that cannot be read.
const damagedNext = "restore it from a backup (`burrow restore`), or mend the key with etcdctl; when it is deleted, `burrow drift` lists what its resource leaves"

func decodeRecord(kv *mvccpb.KeyValue) (manifest.Record, error) {
	var rec manifest.Record
	err := json.Unmarshal(kv.Value, &rec)
	if err == nil {
		err = isOf(kv, rec.Kind, rec.Metadata.Name)
	}
	if err != nil {
		return rec, errs.NewOperator(string(kv.Key), "decode record", err, damagedNext)
	}
	rec.Metadata.ResourceVersion = kv.ModRevision
	return rec, nil
}

// damaged stands for a record that cannot be read. Nothing of its value is believed.
func damaged(kind manifest.Kind, kv *mvccpb.KeyValue, why error) manifest.Record {
	rec := manifest.Record{APIVersion: manifest.APIVersion, Kind: kind}
	rec.Metadata.Name = string(kv.Key[bytes.LastIndexByte(kv.Key, '/')+1:])
	rec.Metadata.ResourceVersion = kv.ModRevision
	rec.Status = manifest.Status{Phase: manifest.PhaseDamaged, Message: why.Error()}
	return rec
}

// isOf refuses a record of another resource than its key's.
func isOf(kv *mvccpb.KeyValue, kind manifest.Kind, name string) error {
	if folder, ok := folders[kind]; !ok || !strings.HasSuffix(string(kv.Key), "/"+folder+"/"+name) {
		return fmt.Errorf("%w: it is the record of %q", errs.ErrInvalid, ref(kind, name))
	}
	return nil
}

func encodeRecord(rec manifest.Record) (string, error) {
	if rec.Status.Phase == manifest.PhaseDamaged {
		return "", errs.NewOperator(ref(rec.Kind, rec.Metadata.Name), "write record", errs.Reason("it is damaged: %s", rec.Status.Message), "")
	}
	rec.Metadata.ResourceVersion = 0
	return encode(ref(rec.Kind, rec.Metadata.Name), rec)
}

// encode gives the JSON of v, refusing what is too big for etcd.
func encode(object string, v any) (string, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return "", errs.NewPermanent(object, "encode", err, "")
	}
	if len(data) >= MaxValue {
		return "", errs.NewPermanent(object, "encode", fmt.Errorf("%w: %d KiB of JSON, the limit is %d KiB",
			errs.ErrInvalid, len(data)>>10, MaxValue>>10), "move long inline text into files of the playbook")
	}
	return string(data), nil
}
