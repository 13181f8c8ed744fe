package etcdstate

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"burrow.dev/burrow/internal/capacity"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
)

// Reserve writes a reservation of uid on the host that choose names, and gives the host.
// choose gets all hosts as they were at one revision and may be asked again: the
// transaction compares that the host lives, that its record is the one seen, that nothing
// was reserved on it since, and that uid has no place anywhere. A uid that has a place
// keeps it, and choose is not asked.
func (s *Store) Reserve(ctx context.Context, uid string, r capacity.Reservation, choose func([]capacity.Host) (string, error)) (string, error) {
	var host string
	err := RetryConflict(ctx, r.Owner, "reserve a host", func() (done bool, err error) {
		room, err := s.readRoom(ctx, uid)
		if err != nil {
			return false, err
		}
		if host = room.placed; host != "" {
			return true, nil
		}
		if host, err = choose(room.hosts); err != nil {
			return false, err
		}
		return s.reserveOn(ctx, room, host, uid, r)
	})
	return host, err
}

// room is all hosts at one revision, and where a uid has its place already.
type room struct {
	hosts    []capacity.Host
	records  map[string]*mvccpb.KeyValue
	placed   string
	revision int64
}

func (s *Store) readRoom(ctx context.Context, uid string) (room, error) {
	alive, reserved := s.Key("alive", ""), s.Key("reservations", "")
	resp, err := s.client.Txn(ctx).Then(
		clientv3.OpGet(s.Key("hosts", ""), clientv3.WithPrefix()),
		clientv3.OpGet(alive, clientv3.WithPrefix(), clientv3.WithKeysOnly()),
		clientv3.OpGet(reserved, clientv3.WithPrefix()),
		clientv3.OpGet(s.Key("placements", uid)),
	).Commit()
	if err != nil {
		return room{}, Translate(ctx, "hosts", "read capacity", err)
	}
	kvs := func(i int) []*mvccpb.KeyValue { return resp.Responses[i].GetResponseRange().Kvs }
	out := room{records: map[string]*mvccpb.KeyValue{}, revision: resp.Header.Revision}
	living := map[string]bool{}
	for _, kv := range kvs(1) {
		living[strings.TrimPrefix(string(kv.Key), alive)] = true
	}
	for _, kv := range kvs(0) {
		host, err := decodeHost(kv)
		if err != nil {
			s.log.Error("host left out: nothing is placed on it", "key", string(kv.Key), "error", err)
			continue
		}
		host.Alive = living[host.Name]
		out.hosts, out.records[host.Name] = append(out.hosts, host), kv
	}
	for _, kv := range kvs(2) {
		name, owner, _ := strings.Cut(strings.TrimPrefix(string(kv.Key), reserved), "/")
		var r capacity.Reservation
		if err := json.Unmarshal(kv.Value, &r); err != nil {
			return room{}, errs.NewOperator(string(kv.Key), "decode reservation", err, "")
		}
		if i := slices.IndexFunc(out.hosts, func(h capacity.Host) bool { return h.Name == name }); i >= 0 {
			out.hosts[i].Reservations[owner] = r
		}
	}
	for _, kv := range kvs(3) {
		out.placed = string(kv.Value)
	}
	return out, nil
}

func decodeHost(kv *mvccpb.KeyValue) (capacity.Host, error) {
	rec, err := decodeRecord(kv)
	if err != nil {
		return capacity.Host{}, err
	}
	host := capacity.Host{
		Name: rec.Metadata.Name, Labels: rec.Metadata.Labels, Lost: rec.Status.Phase == manifest.PhaseLost,
		Reservations: map[string]capacity.Reservation{},
	}
	if err := json.Unmarshal(rec.Spec, &host.Spec); err != nil {
		return capacity.Host{}, errs.NewOperator(ref(manifest.KindHost, host.Name), "decode spec", err, "delete the host's record; its worker writes it again")
	}
	return host, nil
}

func (s *Store) reserveOn(ctx context.Context, seen room, host, uid string, r capacity.Reservation) (bool, error) {
	if seen.records[host] == nil {
		return false, errs.NewPermanent(r.Owner, "reserve on host "+host, errs.ErrNotFound, "burrow get hosts lists them")
	}
	r.Since = time.Now().UTC()
	value, err := encode(r.Owner, r)
	if err != nil {
		return false, err
	}
	resp, err := s.client.Txn(ctx).If(
		Unchanged(seen.records[host]),
		Present(s.Key("alive", host)),
		NothingNewer(s.Key("reservations", host, ""), seen.revision),
		Absent(s.Key("placements", uid)),
	).Then(
		clientv3.OpPut(s.Key("reservations", host, uid), value),
		clientv3.OpPut(s.Key("placements", uid), host),
	).Commit()
	if err != nil {
		return false, Translate(ctx, r.Owner, "reserve on host "+host, err)
	}
	return resp.Succeeded, nil
}

// Resize replaces uid's reservation where it is. admit gets its host as it was at one
// revision, and may refuse; it may be asked again, since nothing may have been reserved on
// the host in between.
func (s *Store) Resize(ctx context.Context, uid string, r capacity.Reservation, admit func(capacity.Host) error) error {
	return RetryConflict(ctx, r.Owner, "resize its reservation", func() (bool, error) {
		room, err := s.readRoom(ctx, uid)
		if err != nil {
			return false, err
		}
		i := slices.IndexFunc(room.hosts, func(h capacity.Host) bool { return h.Name == room.placed })
		if room.placed == "" || i < 0 {
			return false, errs.NewPermanent(r.Owner, "resize its reservation", errs.ErrNotFound, "burrow sweep")
		}
		if err := admit(room.hosts[i]); err != nil {
			return false, err
		}
		r.Since = room.hosts[i].Reservations[uid].Since
		value, err := encode(r.Owner, r)
		if err != nil {
			return false, err
		}
		resp, err := s.client.Txn(ctx).If(
			Present(s.Key("placements", uid)),
			NothingNewer(s.Key("reservations", room.placed, ""), room.revision),
		).Then(clientv3.OpPut(s.Key("reservations", room.placed, uid), value)).Commit()
		if err != nil {
			return false, Translate(ctx, r.Owner, "resize its reservation", err)
		}
		return resp.Succeeded, nil
	})
}

// Unreserve drops uid's reservation, wherever it is: a caller that never heard where need
// not know. None is success.
func (s *Store) Unreserve(ctx context.Context, uid string) error {
	object := "reservation of " + uid
	return RetryConflict(ctx, object, "drop", func() (bool, error) {
		place := s.Key("placements", uid)
		resp, err := s.client.Get(ctx, place)
		if err != nil {
			return false, Translate(ctx, object, "read", err)
		}
		if len(resp.Kvs) == 0 {
			return true, nil
		}
		host := string(resp.Kvs[0].Value)
		done, err := s.client.Txn(ctx).If(Unchanged(resp.Kvs[0])).
			Then(clientv3.OpDelete(place), clientv3.OpDelete(s.Key("reservations", host, uid))).Commit()
		return err == nil && done.Succeeded, Translate(ctx, object, "drop on host "+host, err)
	})
}
