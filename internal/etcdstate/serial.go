package etcdstate

import (
	"context"
	"fmt"
	"strconv"

	clientv3 "go.etcd.io/etcd/client/v3"

	"burrow.dev/burrow/internal/errs"
)

// Serial gives every owner its own number of a series, 1 and up: the same owner the same
// number again, for ever, and no number twice. It costs two round trips, one for an owner that
// has its number.
func (s *Store) Serial(ctx context.Context, series, owner string) (int64, error) {
	object := "series " + series
	last, own := s.Key("serials", series), s.Key("serials", series, owner)
	var number int64
	err := RetryConflict(ctx, object, "count", func() (bool, error) {
		resp, err := s.client.Txn(ctx).Then(clientv3.OpGet(last), clientv3.OpGet(own)).Commit()
		if err != nil {
			return false, Translate(ctx, object, "read", err)
		}
		unchanged, kvs := Absent(last), resp.Responses[0].GetResponseRange().Kvs
		had := resp.Responses[1].GetResponseRange().Kvs
		number = 0
		for _, kv := range append(kvs, had...) { // the owner's own is the last word
			if number, err = strconv.ParseInt(string(kv.Value), 10, 64); err != nil {
				return false, errs.NewOperator(string(kv.Key), "decode number", fmt.Errorf("%w: %q", errs.ErrInvalid, kv.Value), "restore it from a backup")
			}
		}
		if len(had) > 0 {
			return true, nil
		}
		if len(kvs) > 0 {
			unchanged = Unchanged(kvs[0])
		}
		number++
		text := strconv.FormatInt(number, 10)
		done, err := s.client.Txn(ctx).If(unchanged, Absent(own)).Then(clientv3.OpPut(last, text), clientv3.OpPut(own, text)).Commit()
		return err == nil && done.Succeeded, Translate(ctx, object, "count", err)
	})
	return number, err
}
