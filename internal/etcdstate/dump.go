package etcdstate

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
)

// Kept is a key as a backup has it.
type Kept struct {
	// Key is without the store's prefix: "servers/db".
	Key   string
	Value []byte
	// Revision at which the key was written. Keys with the same one were written in one
	// transaction, and are so again when they are restored.
	Revision int64
	// Quarantined is true for an address that was released a moment ago: the key ends by itself.
	Quarantined bool
}

// EachKept calls fn for every key that belongs into a backup, in the order of keys, all at
// one revision, which it gives; rev 0 is the newest. Left out is what tells of processes
// and ends with their lease: alive/, locks/.
func (s *Store) EachKept(ctx context.Context, rev int64, fn func(Kept) error) (int64, error) {
	at, err := s.eachPage(ctx, s.prefix, rev, listPage, func(kv *mvccpb.KeyValue) error {
		key := strings.TrimPrefix(string(kv.Key), s.prefix)
		quarantined := IsQuarantine(key)
		if kv.Lease != 0 && !quarantined {
			return nil
		}
		return fn(Kept{Key: key, Value: kv.Value, Revision: kv.ModRevision, Quarantined: quarantined})
	})
	if errors.Is(err, rpctypes.ErrCompacted) {
		return 0, errs.NewOperator("etcd", "read all records", err, "it took longer than etcd keeps old revisions: try again, to a faster disk")
	}
	return at, Translate(ctx, "etcd", "read all records", err)
}

// IsQuarantine says that a key is that of an address in quarantine, which ends with a lease.
func IsQuarantine(key string) bool {
	rest, ok := strings.CutPrefix(key, "ipam/")
	_, rest, found := strings.Cut(rest, "/")
	return ok && found && strings.HasPrefix(rest, "q/")
}

// IsRecord says that a key is that of a record.
func IsRecord(key string) bool {
	folder, _, _ := strings.Cut(key, "/")
	for _, known := range folders {
		if known == folder {
			return true
		}
	}
	return false
}

// RecordOf decodes a key's record; ok is false for keys of other things.
func RecordOf(key string, value []byte) (rec manifest.Record, ok bool, err error) {
	if !IsRecord(key) {
		return rec, false, nil
	}
	err = json.Unmarshal(value, &rec)
	return rec, true, err
}

// SealedUnder gives the id of the master key that the value of a secret is encrypted under,
// or that masterkey says is in use; ok is false for keys of other things.
func SealedUnder(key string, value []byte) (keyID string, ok bool, err error) {
	switch {
	case strings.HasPrefix(key, "secrets/"):
		var box sealed
		err = json.Unmarshal(value, &box)
		keyID = box.KeyID
	case key == "masterkey":
		var state keyState
		err = json.Unmarshal(value, &state)
		keyID = state.Current
	default:
		return "", false, nil
	}
	if err == nil && keyID == "" {
		err = errs.ErrInvalid
	}
	return keyID, true, err
}
