package etcdstate

import (
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// MaxOps is how many comparisons or operations one transaction may have (etcd's
// --max-txn-ops default).
const MaxOps = 128

// Absent compares that a key does not exist.
func Absent(key string) clientv3.Cmp { return clientv3.Compare(clientv3.CreateRevision(key), "=", 0) }

// Present compares that a key exists, whatever it holds.
func Present(key string) clientv3.Cmp { return clientv3.Compare(clientv3.CreateRevision(key), ">", 0) }

// Unchanged compares that a key still holds what kv was read as.
func Unchanged(kv *mvccpb.KeyValue) clientv3.Cmp {
	return clientv3.Compare(clientv3.ModRevision(string(kv.Key)), "=", kv.ModRevision)
}

// NothingNewer compares that no key below prefix was added or changed after revision rev.
// Deletions pass: use it where those only give room.
func NothingNewer(prefix string, rev int64) clientv3.Cmp {
	return clientv3.Compare(clientv3.ModRevision(prefix).WithPrefix(), "<", rev+1)
}
