package etcdstate

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Own claims each of names ("52:54:00:12:34:56") in a folder ("macs") for an owner, all in
// one request but each for itself, and gives who has them after: the owner itself, or
// somebody who was first. At most MaxOps names.
func (s *Store) Own(ctx context.Context, folder, owner string, names ...string) (holders []string, err error) {
	if len(names) == 0 {
		return nil, nil
	}
	ops := make([]clientv3.Op, len(names))
	for i, name := range names {
		key := s.Key(folder, name)
		ops[i] = clientv3.OpTxn([]clientv3.Cmp{Absent(key)},
			[]clientv3.Op{clientv3.OpPut(key, owner)}, []clientv3.Op{clientv3.OpGet(key)})
	}
	resp, err := s.client.Txn(ctx).Then(ops...).Commit()
	if err != nil {
		return nil, Translate(ctx, folder, "claim for "+owner, err)
	}
	for _, r := range resp.Responses {
		holder := owner
		if answer := r.GetResponseTxn(); !answer.Succeeded {
			holder = string(answer.Responses[0].GetResponseRange().Kvs[0].Value)
		}
		holders = append(holders, holder)
	}
	return holders, nil
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
