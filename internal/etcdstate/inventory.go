package etcdstate

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"burrow.dev/burrow/internal/capacity"
	"burrow.dev/burrow/internal/errs"
)

// Reference says that a server (Owner, its uid) needs a network on a host.
type Reference struct{ NetworkUID, Host, Owner string }

// AllReferences lists every reference, sorted by network, host and owner.
func (s *Store) AllReferences(ctx context.Context) ([]Reference, error) {
	prefix := s.Key("refs", "")
	var out []Reference
	_, err := s.EachPage(ctx, prefix, func(kv *mvccpb.KeyValue) error {
		if p := strings.SplitN(strings.TrimPrefix(string(kv.Key), prefix), "/", 3); len(p) == 3 {
			out = append(out, Reference{NetworkUID: p[0], Host: p[1], Owner: p[2]})
		}
		return nil
	})
	return out, Translate(ctx, "networks", "list references", err)
}

// Reserved says what a uid has reserved on a host. Owner is as users name it: "server/db".
type Reserved struct{ Host, UID, Owner string }

// Reservations lists every reservation, by host and uid.
func (s *Store) Reservations(ctx context.Context) ([]Reserved, error) {
	prefix := s.Key("reservations", "")
	var out []Reserved
	_, err := s.EachPage(ctx, prefix, func(kv *mvccpb.KeyValue) error {
		host, uid, _ := strings.Cut(strings.TrimPrefix(string(kv.Key), prefix), "/")
		var r capacity.Reservation
		if err := json.Unmarshal(kv.Value, &r); err != nil {
			return errs.NewOperator(string(kv.Key), "decode reservation", err, "")
		}
		out = append(out, Reserved{Host: host, UID: uid, Owner: r.Owner})
		return nil
	})
	return out, Translate(ctx, "hosts", "list reservations", err)
}

// Placement gives the host on which uid has its reservation; "" when it has none.
func (s *Store) Placement(ctx context.Context, uid string) (string, error) {
	resp, err := s.client.Get(ctx, s.Key("placements", uid))
	if err != nil {
		return "", Translate(ctx, "placement of "+uid, "read", err)
	}
	for _, kv := range resp.Kvs {
		return string(kv.Value), nil
	}
	return "", nil
}

// Owners lists who has each name of a folder that OwnOne fills ("macs").
func (s *Store) Owners(ctx context.Context, folder string) (map[string]string, error) {
	prefix := s.Key(folder, "")
	out := map[string]string{}
	_, err := s.EachPage(ctx, prefix, func(kv *mvccpb.KeyValue) error {
		out[strings.TrimPrefix(string(kv.Key), prefix)] = string(kv.Value)
		return nil
	})
	return out, Translate(ctx, folder, "list owners", err)
}

// Claimed is a claim that somebody holds: Key ("server/db") for WorkflowID, since Since.
type Claimed struct {
	Key, WorkflowID string
	Since           time.Time
	// Revision is that of the claim; one that is taken again has a newer one.
	Revision int64
}

// Claims lists every claim, by key.
func (s *Store) Claims(ctx context.Context) ([]Claimed, error) {
	prefix := s.Key("claims", "")
	var out []Claimed
	_, err := s.EachPage(ctx, prefix, func(kv *mvccpb.KeyValue) error {
		var c claim
		if err := json.Unmarshal(kv.Value, &c); err != nil {
			return errs.NewOperator(string(kv.Key), "decode claim", err, "")
		}
		out = append(out, Claimed{
			Key: strings.TrimPrefix(string(kv.Key), prefix), WorkflowID: c.WorkflowID, Since: c.Since, Revision: kv.ModRevision,
		})
		return nil
	})
	return out, Translate(ctx, "claims", "list", err)
}

// DropClaim takes away a claim that is still as it was listed; one that was given back or
// taken again meanwhile is left alone.
func (s *Store) DropClaim(ctx context.Context, c Claimed) error {
	key := s.Key("claims", c.Key)
	_, err := s.client.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(key), "=", c.Revision)).
		Then(clientv3.OpDelete(key)).Commit()
	return Translate(ctx, "claim "+c.Key, "drop", err)
}
