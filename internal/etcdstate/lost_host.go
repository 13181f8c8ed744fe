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

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
)

// lostFolder holds lost/<host>: somebody declared that the host does not come back. While
// the key is there its worker cannot say that it lives, so nothing is placed on the host
// and no operation waits for it; what is to be removed there becomes a Debt.
//
//	alive/ absent ──DeclareLost──▶ lost/ ──Owe──▶ debts/ ──PayDebt──▶ none left ──FoundAgain──▶ alive/
const lostFolder = "lost"

// ErrHostLost says that a host is declared lost.
var ErrHostLost = errors.New("the host was declared lost")

// LostHost says since when a host is declared lost, and by whom.
type LostHost struct {
	Since time.Time `json:"since"`
	By    string    `json:"by,omitempty"`
}

// DeclareLost marks a host whose worker does not answer as one that does not come back,
// and gives the mark; one that is marked already keeps its mark. A host whose worker
// lives is refused: permanent, errs.ErrBusy.
func (s *Store) DeclareLost(ctx context.Context, host string, mark LostHost) (LostHost, error) {
	object, action := ref(manifest.KindHost, host), "declare lost"
	key, err := s.recordKey(manifest.KindHost, host)
	if err != nil {
		return LostHost{}, err
	}
	lost, alive := s.Key(lostFolder, host), s.Key("alive", host)
	err = RetryConflict(ctx, object, action, func() (bool, error) {
		resp, err := s.client.Txn(ctx).Then(clientv3.OpGet(key), clientv3.OpGet(lost), clientv3.OpGet(alive)).Commit()
		if err != nil {
			return false, Translate(ctx, object, action, err)
		}
		there := func(i int) []*mvccpb.KeyValue { return resp.Responses[i].GetResponseRange().Kvs }
		switch {
		case len(there(1)) > 0:
			return true, decodeLost(there(1)[0], &mark)
		case len(there(2)) > 0:
			return false, errs.NewPermanent(object, action, fmt.Errorf("%w: its worker lives, since %s", errs.ErrBusy, there(2)[0].Value),
				"what is there is removed as usual: `burrow delete KIND/NAME`; stop its worker first if the machine is really to go")
		case len(there(0)) == 0:
			return false, errs.NewPermanent(object, action, errs.ErrNotFound, "`burrow host list` lists the hosts")
		}
		rec, err := decodeRecord(there(0)[0])
		if err != nil {
			return false, err
		}
		rec.Status.Phase, rec.Status.Message = manifest.PhaseLost, mark.message()
		record, err := encodeRecord(bounded(rec))
		if err != nil {
			return false, err
		}
		value, err := encode(object, mark)
		if err != nil {
			return false, err
		}
		done, err := s.client.Txn(ctx).If(Absent(lost), Absent(alive), Unchanged(there(0)[0])).
			Then(clientv3.OpPut(lost, value), clientv3.OpPut(key, record)).Commit()
		return err == nil && done.Succeeded, Translate(ctx, object, action, err)
	})
	return mark, err
}

func (m LostHost) message() string {
	by := ""
	if m.By != "" {
		by = " by " + m.By
	}
	return fmt.Sprintf("declared lost at %s%s; if it comes back after all, its worker first removes what was deleted meanwhile", m.Since.Format(time.RFC3339), by)
}

func decodeLost(kv *mvccpb.KeyValue, mark *LostHost) error {
	if err := json.Unmarshal(kv.Value, mark); err != nil {
		return errs.NewOperator(string(kv.Key), "decode", err, "restore it from a backup")
	}
	return nil
}

// LostHosts gives the hosts that are declared lost.
func (s *Store) LostHosts(ctx context.Context) (map[string]LostHost, error) {
	prefix, out := s.Key(lostFolder, ""), map[string]LostHost{}
	_, err := s.EachPage(ctx, prefix, func(kv *mvccpb.KeyValue) error {
		var mark LostHost
		err := decodeLost(kv, &mark)
		out[strings.TrimPrefix(string(kv.Key), prefix)] = mark
		return err
	})
	return out, Translate(ctx, "hosts", "list the lost", err)
}

// LostNames gives the names of the hosts that are declared lost, sorted.
func (s *Store) LostNames(ctx context.Context) ([]string, error) {
	lost, err := s.LostHosts(ctx)
	return slices.Sorted(maps.Keys(lost)), err
}

// IsLost reports whether a host is declared lost.
func (s *Store) IsLost(ctx context.Context, host string) (bool, error) {
	resp, err := s.client.Get(ctx, s.Key(lostFolder, host), clientv3.WithCountOnly())
	if err != nil {
		return false, Translate(ctx, ref(manifest.KindHost, host), "look whether it is lost", err)
	}
	return resp.Count > 0, nil
}

// FoundAgain takes the mark off a host that has paid all its debts: its worker may live
// again. false: it owes something (by now). One that is not marked is found already.
func (s *Store) FoundAgain(ctx context.Context, host string) (found bool, err error) {
	object, action := ref(manifest.KindHost, host), "take the mark off"
	key, err := s.recordKey(manifest.KindHost, host)
	if err != nil {
		return false, err
	}
	lost := s.Key(lostFolder, host)
	err = RetryConflict(ctx, object, action, func() (bool, error) {
		resp, err := s.client.Txn(ctx).Then(clientv3.OpGet(key), clientv3.OpGet(lost, clientv3.WithCountOnly()),
			clientv3.OpGet(s.debtsOf(host), clientv3.WithPrefix(), clientv3.WithCountOnly())).Commit()
		if err != nil {
			return false, Translate(ctx, object, action, err)
		}
		count := func(i int) int64 { return resp.Responses[i].GetResponseRange().Count }
		if found = count(1) == 0; found || count(2) > 0 {
			return true, nil
		}
		compare := []clientv3.Cmp{Present(lost), clientv3.Compare(clientv3.CreateRevision(s.debtsOf(host)).WithPrefix(), "=", 0)}
		write := []clientv3.Op{clientv3.OpDelete(lost)}
		for _, kv := range resp.Responses[0].GetResponseRange().Kvs {
			rec, err := decodeRecord(kv)
			if err != nil {
				return false, err
			}
			rec.Status.Phase, rec.Status.Message, rec.Status.Lost = manifest.PhaseUnknown, startingMessage, nil
			record, err := encodeRecord(rec)
			if err != nil {
				return false, err
			}
			compare, write = append(compare, Unchanged(kv)), append(write, clientv3.OpPut(key, record))
		}
		done, err := s.client.Txn(ctx).If(compare...).Then(write...).Commit()
		found = err == nil && done.Succeeded
		return found, Translate(ctx, object, action, err)
	})
	return found, err
}

// ReplaceOnLost writes what is to be said of a record on a host that is declared lost: it
// compares that it still is, and that the record is the version that rec was made from.
// False: one of them is not so any more, and nothing was written.
func (s *Store) ReplaceOnLost(ctx context.Context, host string, rec manifest.Record) (bool, error) {
	return s.replace(ctx, rec, Present(s.Key(lostFolder, host)))
}
