package etcdstate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"burrow.dev/burrow/internal/capacity"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
)

// RegisterHost writes the record of a host as its worker found it, and keeps what a user
// set: unschedulable, overcommit, and labels; labels are added where absent. It keeps the
// status too: whether the host lives is said by KeepAlive, and by the leader.
func (s *Store) RegisterHost(ctx context.Context, name string, labels map[string]string, spec capacity.Spec) error {
	rec, err := newHostRecord(name, labels, spec)
	if err != nil {
		return err
	}
	if _, err := s.Create(ctx, rec); !errors.Is(err, errs.ErrExists) {
		return err
	}
	_, err = s.Update(ctx, manifest.KindHost, name, func(r *manifest.Record) error {
		var old capacity.Spec
		if err := json.Unmarshal(r.Spec, &old); err != nil {
			return errs.NewOperator(ref(manifest.KindHost, name), "decode spec", err, "delete the host's record; its worker writes it again")
		}
		merged := spec
		merged.Unschedulable = old.Unschedulable
		merged.CPUOvercommit, merged.MemoryOvercommit = old.CPUOvercommit, old.MemoryOvercommit
		all := maps.Clone(labels)
		if all == nil {
			all = map[string]string{}
		}
		maps.Copy(all, r.Metadata.Labels)
		r.Metadata.Labels = all
		r.Spec, err = json.Marshal(merged)
		return err
	})
	return err
}

func newHostRecord(name string, labels map[string]string, spec capacity.Spec) (manifest.Record, error) {
	data, err := json.Marshal(spec)
	if err != nil {
		return manifest.Record{}, errs.NewPermanent(ref(manifest.KindHost, name), "encode spec", err, "")
	}
	return manifest.Record{
		APIVersion: manifest.APIVersion,
		Kind:       manifest.KindHost,
		Metadata: manifest.RecordMeta{
			Metadata: manifest.Metadata{Name: name, Labels: labels},
			UID:      uuid.NewString(), Generation: 1, CreatedAt: time.Now().UTC(),
		},
		Spec:   data,
		Status: manifest.Status{Phase: manifest.PhaseUnknown, Message: startingMessage, Host: name},
	}, nil
}

// startingMessage stands in a host's record until its worker holds the lease.
const startingMessage = "its worker has not been ready yet"

// KeepAlive holds alive/<host> by lease and returns when ctx ends, with nil, after giving
// the lease back; and with ErrHostLost when the host was declared lost: what its worker
// does then, it does too late. When the lease is lost (this process was stopped, or etcd was away), it
// takes a new one. A worker that starts again takes the key over from the one before.
// taken is called each time the lease was taken and the host's record says Ready: what a
// leader wrote about the host's servers meanwhile is the caller's to set right. It must
// not block.
func (s *Store) KeepAlive(ctx context.Context, host string, taken func()) error {
	for ctx.Err() == nil {
		err := s.holdAlive(ctx, host, taken)
		if ctx.Err() != nil {
			break
		}
		if errors.Is(err, ErrHostLost) {
			return err
		}
		s.log.Warn("lease of the host is taken again", "host", host, "error", err)
		if wait(ctx, watchPause) != nil {
			break
		}
	}
	return nil
}

func (s *Store) holdAlive(ctx context.Context, host string, taken func()) error {
	lease, giveBack, err := s.lease(ctx, ref(manifest.KindHost, host), s.alive)
	if err != nil {
		return err
	}
	defer giveBack()
	since := time.Now().UTC().Format(time.RFC3339)
	said, err := s.client.Txn(ctx).If(Absent(s.Key(lostFolder, host))).
		Then(clientv3.OpPut(s.Key("alive", host), since, clientv3.WithLease(lease))).Commit()
	if err != nil {
		return Translate(ctx, ref(manifest.KindHost, host), "say alive", err)
	}
	if !said.Succeeded {
		return errs.NewPermanent(ref(manifest.KindHost, host), "say alive", ErrHostLost, "its worker starts again, and first removes what was deleted meanwhile")
	}
	beats, err := s.client.KeepAlive(ctx, lease)
	if err != nil {
		return Translate(ctx, ref(manifest.KindHost, host), "keep lease", err)
	}
	if err := s.backAgain(ctx, host); err != nil {
		return err
	}
	taken()
	for range beats { //nolint:revive // the client renews; the channel ends with the lease
	}
	return fmt.Errorf("lease %x ended", int64(lease))
}

// errSame ends an update that has nothing to write.
var errSame = errors.New("nothing to change")

// backAgain ends in the host's record what a leader wrote there while it was away. A host
// that is not registered has none.
func (s *Store) backAgain(ctx context.Context, host string) error {
	_, err := s.Update(ctx, manifest.KindHost, host, func(r *manifest.Record) error {
		if r.Status.Phase == manifest.PhaseReady && r.Status.Lost == nil {
			return errSame
		}
		setLiveness(r, true)
		return nil
	})
	if errors.Is(err, errSame) || errors.Is(err, errs.ErrNotFound) {
		return nil
	}
	return err
}

// AliveHosts lists the hosts whose worker lives, sorted.
func (s *Store) AliveHosts(ctx context.Context) ([]string, error) {
	prefix := s.Key("alive", "")
	var hosts []string
	_, err := s.EachPage(ctx, prefix, func(kv *mvccpb.KeyValue) error {
		hosts = append(hosts, strings.TrimPrefix(string(kv.Key), prefix))
		return nil
	})
	return hosts, Translate(ctx, "hosts", "list the living", err)
}

// withLiveness sets the phase of Host records: Ready while the host's lease lives, else
// Unknown, or Lost when that was declared. Other kinds pass.
func (s *Store) withLiveness(ctx context.Context, kind manifest.Kind, recs []manifest.Record) ([]manifest.Record, error) {
	if kind != manifest.KindHost || len(recs) == 0 {
		return recs, nil
	}
	show, err := s.liveness(ctx)
	if err != nil {
		return nil, err
	}
	for i := range recs {
		show(&recs[i])
	}
	return recs, nil
}

// liveness gives what completes a Host record that was read: whether its worker lives, and
// what it owes while it is lost.
func (s *Store) liveness(ctx context.Context) (func(*manifest.Record), error) {
	alive, err := s.AliveHosts(ctx)
	if err != nil {
		return nil, err
	}
	debts, err := s.Debts(ctx, "")
	return func(rec *manifest.Record) {
		setLiveness(rec, slices.Contains(alive, rec.Metadata.Name))
		for _, d := range debts {
			if d.Host == rec.Metadata.Name {
				rec.Status.Debts = append(rec.Status.Debts, d.String())
			}
		}
	}, err
}

// setLiveness makes the status what the lease says, whether or not a leader has written
// it into the record yet.
func setLiveness(rec *manifest.Record, alive bool) {
	switch {
	case alive:
		rec.Status.Phase, rec.Status.Message, rec.Status.Lost = manifest.PhaseReady, "", nil
	case rec.Status.Phase != manifest.PhaseUnknown && rec.Status.Phase != manifest.PhaseLost:
		rec.Status.Phase, rec.Status.Message = manifest.PhaseUnknown, "its worker does not answer"
	}
}
