package etcdstate

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
)

// Reservation is what a server takes of a host.
type Reservation struct {
	Owner   string         `json:"owner"`  // "server/db", for messages
	CPU     int            `json:"cpu"`    // vCPUs
	Memory  int            `json:"memory"` // MiB
	DiskGiB map[string]int `json:"diskGiB,omitempty"`
	Since   time.Time      `json:"since"`
}

// HostRoom is a host and what is reserved on it, by server uid.
type HostRoom struct {
	Name         string
	Labels       map[string]string
	Alive        bool
	Spec         HostSpec
	Reservations map[string]Reservation

	record *mvccpb.KeyValue
}

// Capacity is all hosts as they were at one revision, by name.
type Capacity struct {
	Hosts    []HostRoom
	revision int64
}

// Placement gives the host where uid has a reservation; "" is none.
func (s *Store) Placement(ctx context.Context, uid string) (string, error) {
	resp, err := s.client.Get(ctx, s.Key("placements", uid))
	if err != nil {
		return "", Translate(ctx, "reservation of "+uid, "read", err)
	}
	if len(resp.Kvs) == 0 {
		return "", nil
	}
	return string(resp.Kvs[0].Value), nil
}

// Capacity reads hosts, leases and reservations in one snapshot.
func (s *Store) Capacity(ctx context.Context) (Capacity, error) {
	hosts, alive, reserved := s.Key("hosts", ""), s.Key("alive", ""), s.Key("reservations", "")
	resp, err := s.client.Txn(ctx).Then(
		clientv3.OpGet(hosts, clientv3.WithPrefix()),
		clientv3.OpGet(alive, clientv3.WithPrefix(), clientv3.WithKeysOnly()),
		clientv3.OpGet(reserved, clientv3.WithPrefix()),
	).Commit()
	if err != nil {
		return Capacity{}, Translate(ctx, "hosts", "read capacity", err)
	}
	out := Capacity{revision: resp.Header.Revision}
	index := map[string]int{}
	for _, kv := range resp.Responses[0].GetResponseRange().Kvs {
		room, err := hostRoom(kv)
		if err != nil {
			return Capacity{}, err
		}
		index[room.Name] = len(out.Hosts)
		out.Hosts = append(out.Hosts, room)
	}
	for _, kv := range resp.Responses[1].GetResponseRange().Kvs {
		if i, ok := index[strings.TrimPrefix(string(kv.Key), alive)]; ok {
			out.Hosts[i].Alive = true
		}
	}
	for _, kv := range resp.Responses[2].GetResponseRange().Kvs {
		host, uid, _ := strings.Cut(strings.TrimPrefix(string(kv.Key), reserved), "/")
		var r Reservation
		if err := json.Unmarshal(kv.Value, &r); err != nil {
			return Capacity{}, errs.NewOperator(string(kv.Key), "decode reservation", err, "")
		}
		if i, ok := index[host]; ok {
			out.Hosts[i].Reservations[uid] = r
		}
	}
	return out, nil
}

func hostRoom(kv *mvccpb.KeyValue) (HostRoom, error) {
	rec, err := decodeRecord(kv)
	if err != nil {
		return HostRoom{}, err
	}
	room := HostRoom{
		Name: rec.Metadata.Name, Labels: rec.Metadata.Labels,
		Reservations: map[string]Reservation{}, record: kv,
	}
	if err := json.Unmarshal(rec.Spec, &room.Spec); err != nil {
		return HostRoom{}, errs.NewOperator(ref(manifest.KindHost, room.Name), "decode spec", err, "delete the host's record; its worker writes it again")
	}
	return room, nil
}

// Reserve writes a reservation of uid on a host, if that host lives, its record is the one
// seen, nothing was reserved on it since c was read, and uid has no place anywhere. Not so:
// false, and the caller reads again.
func (s *Store) Reserve(ctx context.Context, c Capacity, host HostRoom, uid string, r Reservation) (bool, error) {
	r.Since = time.Now().UTC()
	value, err := encode(r.Owner, r)
	if err != nil {
		return false, err
	}
	resp, err := s.client.Txn(ctx).If(
		Unchanged(host.record),
		Present(s.Key("alive", host.Name)),
		NothingNewer(s.Key("reservations", host.Name, ""), c.revision),
		Absent(s.Key("placements", uid)),
	).Then(
		clientv3.OpPut(s.Key("reservations", host.Name, uid), value),
		clientv3.OpPut(s.Key("placements", uid), host.Name),
	).Commit()
	if err != nil {
		return false, Translate(ctx, r.Owner, "reserve on host "+host.Name, err)
	}
	return resp.Succeeded, nil
}

// Unreserve drops uid's reservation on a host. None is success.
func (s *Store) Unreserve(ctx context.Context, host, uid string) error {
	place := s.Key("placements", uid)
	_, err := s.client.Txn(ctx).
		If(clientv3.Compare(clientv3.Value(place), "=", host)).
		Then(clientv3.OpDelete(s.Key("reservations", host, uid)), clientv3.OpDelete(place)).
		Else(clientv3.OpDelete(s.Key("reservations", host, uid))).
		Commit()
	return Translate(ctx, "reservation of "+uid, "drop on host "+host, err)
}
