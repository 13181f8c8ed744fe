package etcdstate

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"burrow.dev/burrow/internal/errs"
)

// sightingsMost bounds what is remembered, so that the value stays below MaxValue. What is
// left out is seen for the first time again when there is room.
const sightingsMost = 400

// Sightings are the differences that sweeps and drift reports have seen, each with the
// time of its first sighting.
type Sightings map[string]time.Time

// Sight reads the sightings, lets change replace them, and writes them if nobody did so
// meanwhile; otherwise it reads again. Of more than fit, the oldest are kept.
func (s *Store) Sight(ctx context.Context, change func(Sightings) Sightings) (Sightings, error) {
	key := s.Key("sweep", "sightings")
	var out Sightings
	err := RetryConflict(ctx, "sightings", "write", func() (bool, error) {
		resp, err := s.client.Get(ctx, key)
		if err != nil {
			return false, Translate(ctx, "sightings", "read", err)
		}
		unchanged, seen := Absent(key), Sightings{}
		for _, kv := range resp.Kvs {
			unchanged = Unchanged(kv)
			if err := json.Unmarshal(kv.Value, &seen); err != nil {
				return false, errs.NewOperator(key, "decode sightings", err, "delete the key")
			}
		}
		out = oldest(change(maps.Clone(seen)))
		if maps.EqualFunc(out, seen, time.Time.Equal) {
			return true, nil
		}
		value, err := encode("sightings", out)
		if err != nil {
			return false, err
		}
		then := clientv3.OpPut(key, value)
		if len(out) == 0 {
			then = clientv3.OpDelete(key)
		}
		done, err := s.client.Txn(ctx).If(unchanged).Then(then).Commit()
		return err == nil && done.Succeeded, Translate(ctx, "sightings", "write", err)
	})
	return out, err
}

func oldest(all Sightings) Sightings {
	if len(all) <= sightingsMost {
		return all
	}
	ids := slices.SortedFunc(maps.Keys(all), func(a, b string) int {
		if c := all[a].Compare(all[b]); c != 0 {
			return c
		}
		if a < b {
			return -1
		}
		return 1
	})
	kept := Sightings{}
	for _, id := range ids[:sightingsMost] {
		kept[id] = all[id]
	}
	return kept
}
