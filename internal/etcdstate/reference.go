package etcdstate

import (
	"context"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// reference is the value of refs/<network uid>/<host>/<owner>.
type reference struct {
	Since time.Time `json:"since"`
}

// AddReference notes that owner (a server's uid) needs a network on a host. Again is
// success and changes nothing.
func (s *Store) AddReference(ctx context.Context, networkUID, host, owner string) error {
	object := "reference to network " + networkUID
	value, err := encode(object, reference{Since: time.Now().UTC()})
	if err != nil {
		return err
	}
	key := s.Key("refs", networkUID, host, owner)
	_, err = s.client.Txn(ctx).If(Absent(key)).Then(clientv3.OpPut(key, value)).Commit()
	return Translate(ctx, object, "add", err)
}

// DropReference takes owner's reference away and counts in the same transaction how many
// others the network still has on that host: exactly one of several that drop at once
// sees 0. None to drop is success.
func (s *Store) DropReference(ctx context.Context, networkUID, host, owner string) (remaining int, err error) {
	resp, err := s.client.Txn(ctx).Then(
		clientv3.OpDelete(s.Key("refs", networkUID, host, owner)),
		clientv3.OpGet(s.Key("refs", networkUID, host, ""), clientv3.WithPrefix(), clientv3.WithCountOnly()),
	).Commit()
	if err != nil {
		return 0, Translate(ctx, "reference to network "+networkUID, "drop", err)
	}
	return int(resp.Responses[1].GetResponseRange().Count), nil
}

// References lists the owners that need a network on a host, sorted; host "" is all hosts.
func (s *Store) References(ctx context.Context, networkUID, host string) ([]string, error) {
	prefix := s.Key("refs", networkUID, "")
	if host != "" {
		prefix = s.Key("refs", networkUID, host, "")
	}
	var owners []string
	_, err := s.EachPage(ctx, prefix, func(kv *mvccpb.KeyValue) error {
		key := string(kv.Key)
		owners = append(owners, key[strings.LastIndexByte(key, '/')+1:])
		return nil
	})
	return owners, Translate(ctx, "network "+networkUID, "list references", err)
}
