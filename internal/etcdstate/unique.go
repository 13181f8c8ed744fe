package etcdstate

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"

	"burrow.dev/burrow/internal/errs"
)

// OwnOne gives an owner one of names ("52:54:00:12:34:56") in a folder ("macs"): the one it
// has already, whatever was freed before it meanwhile, or the first that nobody has. "" is
// none: all are other owners'. At most MaxOps names.
func (s *Store) OwnOne(ctx context.Context, folder, owner string, names ...string) (string, error) {
	if len(owner) >= MaxValue {
		return "", errs.NewPermanent(folder, "claim", errs.Reason("%w: an owner of %d KiB", errs.ErrInvalid, len(owner)>>10), "")
	}
	var got string
	err := RetryConflict(ctx, folder, "claim for "+owner, func() (bool, error) {
		ops := make([]clientv3.Op, len(names))
		for i, name := range names {
			ops[i] = clientv3.OpGet(s.Key(folder, name))
		}
		resp, err := s.client.Txn(ctx).Then(ops...).Commit()
		if err != nil {
			return false, Translate(ctx, folder, "claim for "+owner, err)
		}
		free := ""
		var cmps []clientv3.Cmp
		for i, r := range resp.Responses {
			kvs := r.GetResponseRange().Kvs
			switch {
			case len(kvs) == 0:
				cmps = append(cmps, Absent(s.Key(folder, names[i])))
				if free == "" {
					free = names[i]
				}
			case string(kvs[0].Value) == owner:
				got = names[i]
				return true, nil
			default:
				cmps = append(cmps, Unchanged(kvs[0]))
			}
		}
		if free == "" {
			got = ""
			return true, nil
		}
		got = free
		done, err := s.client.Txn(ctx).If(cmps...).Then(clientv3.OpPut(s.Key(folder, free), owner)).Commit()
		return err == nil && done.Succeeded, Translate(ctx, folder, "claim for "+owner, err)
	})
	if err != nil {
		return "", err
	}
	return got, nil
}

// Disown gives back those of names that the owner has. None is success.
func (s *Store) Disown(ctx context.Context, folder, owner string, names ...string) error {
	if len(names) == 0 {
		return nil
	}
	ops := make([]clientv3.Op, len(names))
	for i, name := range names {
		key := s.Key(folder, name)
		ops[i] = clientv3.OpTxn([]clientv3.Cmp{clientv3.Compare(clientv3.Value(key), "=", owner)},
			[]clientv3.Op{clientv3.OpDelete(key)}, nil)
	}
	_, err := s.client.Txn(ctx).Then(ops...).Commit()
	return Translate(ctx, folder, "give back of "+owner, err)
}
