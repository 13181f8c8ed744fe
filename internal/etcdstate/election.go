package etcdstate

import (
	"context"
	"errors"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
)

// Term is one time of leading. Leadership gives order only, as a lock does: a leader may
// be stopped past its lease and go on later, so every write of it compares IsLeader.
type Term struct {
	store    *Store
	election *concurrency.Election
}

// Lead campaigns for the leadership of name among all who do ("control"), and calls lead
// each time it is won; candidate is shown to people. It campaigns again after a lost
// lease, and when lead gives an error, which is logged. lead's context ends with the
// lease. Lead returns when ctx ends, and gives leadership back first: another candidate
// leads at once. A leader that dies is followed when its lease (Options.LockTTL) runs out.
func (s *Store) Lead(ctx context.Context, name, candidate string, lead func(context.Context, *Term) error) {
	for ctx.Err() == nil {
		if err := s.leadOnce(ctx, name, candidate, lead); err != nil && ctx.Err() == nil {
			s.log.Warn("leadership is sought again", "of", name, "error", err)
			if wait(ctx, watchPause) != nil {
				return
			}
		}
	}
}

func (s *Store) leadOnce(ctx context.Context, name, candidate string, lead func(context.Context, *Term) error) error {
	object := "leadership of " + name
	lease, resign, err := s.lease(ctx, object, time.Duration(s.locks.ttl)*time.Second)
	if err != nil {
		return err
	}
	defer resign() // whatever became of the campaign
	// A session of its own: that of the locks is given up when one of them is in doubt.
	session, err := concurrency.NewSession(s.client, concurrency.WithLease(lease), concurrency.WithTTL(s.locks.ttl))
	if err != nil {
		return Translate(ctx, object, "keep lease", err)
	}
	defer session.Orphan()
	term := &Term{store: s, election: concurrency.NewElection(session, s.Key("locks", "leader", name))}
	leading, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(session.Ctx(), stop)()
	// RequireLeader: on a member that is cut off from the others, the wait for the leader
	// before us would never end.
	if err := term.election.Campaign(clientv3.WithRequireLeader(leading), candidate); err != nil {
		return Translate(ctx, object, "campaign", err)
	}
	s.log.Info("leads", "of", name, "candidate", candidate)
	err = lead(leading, term)
	if ctx.Err() == nil && leading.Err() != nil {
		return errs.New(errs.Transient, object, "keep", errors.New("the lease ran out"), awayNext)
	}
	return err
}

// IsLeader compares that the term still goes on; part of every transaction of a leader.
func (t *Term) IsLeader() clientv3.Cmp {
	return clientv3.Compare(clientv3.CreateRevision(t.election.Key()), "=", t.election.Rev())
}

// ReplaceOfLost writes what a leader has to say of a record on a host that is away: it
// compares that the term goes on, that the host has no lease, and that the record is
// still the version that rec was made from. False: one of them is not so any more, nothing
// was written, and the watch of what changed brings the news.
func (t *Term) ReplaceOfLost(ctx context.Context, host string, rec manifest.Record) (bool, error) {
	return t.store.replace(ctx, rec, t.IsLeader(), Absent(t.store.Key("alive", host)))
}

// ReplaceOfLiving is what a host's worker writes to end what a leader said of it: it
// compares that the host has its lease and that the record is still the version that rec
// was made from. False: not so any more, and nothing was written.
func (s *Store) ReplaceOfLiving(ctx context.Context, host string, rec manifest.Record) (bool, error) {
	return s.replace(ctx, rec, Present(s.Key("alive", host)))
}

// replace writes a record over the version it was read as, while guards hold.
func (s *Store) replace(ctx context.Context, rec manifest.Record, guards ...clientv3.Cmp) (bool, error) {
	key, err := s.recordKey(rec.Kind, rec.Metadata.Name)
	if err != nil {
		return false, err
	}
	value, err := encodeRecord(bounded(rec))
	if err != nil {
		return false, err
	}
	unchanged := clientv3.Compare(clientv3.ModRevision(key), "=", rec.Metadata.ResourceVersion)
	resp, err := s.client.Txn(ctx).If(append(guards, unchanged)...).Then(clientv3.OpPut(key, value)).Commit()
	if err != nil {
		return false, Translate(ctx, ref(rec.Kind, rec.Metadata.Name), "replace record", err)
	}
	return resp.Succeeded, nil
}

// Leader gives the candidate that leads name now, "" while nobody does.
func (s *Store) Leader(ctx context.Context, name string) (string, error) {
	resp, err := s.client.Get(ctx, s.Key("locks", "leader", name, ""), clientv3.WithFirstCreate()...)
	if err != nil {
		return "", Translate(ctx, "leadership of "+name, "read", err)
	}
	for _, kv := range resp.Kvs {
		return string(kv.Value), nil
	}
	return "", nil
}
