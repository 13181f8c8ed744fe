package etcdstate

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
)

// debtsFolder holds debts/<host>/<number>: what a lost host is to do first when it comes
// back, in the order of the numbers.
const debtsFolder = "debts"

// Debt is a step of an undo or a delete that its host could not do, since it was declared
// lost: the call of the activity that does it. What carries the mark of another owner is
// refused by that activity, then as now.
type Debt struct {
	Host string `json:"host"`
	// Object is the resource it was made for, UID its owner's.
	Object string `json:"object"`
	UID    string `json:"uid,omitempty"`
	// What it is in words: "remove its domain".
	What string `json:"what"`
	// Activity is the registered name, Input its argument.
	Activity string          `json:"activity"`
	Input    json.RawMessage `json:"input"`
	Since    time.Time       `json:"since"`

	key string
}

// String gives "server/db: remove its domain".
func (d Debt) String() string { return d.Object + ": " + d.What }

func (s *Store) debtsOf(host string) string { return s.Key(debtsFolder, host, "") }

// Owe writes a debt down behind those that are there. False: the host is not lost (any
// more), and nothing was written: it can do the step itself. A debt that is written down
// twice is paid twice, which is as good as once.
func (s *Store) Owe(ctx context.Context, d Debt) (bool, error) {
	object, action := ref(manifest.KindHost, d.Host), "write down what it owes"
	value, err := encode(d.Object, d)
	if err != nil {
		return false, err
	}
	owed := false
	err = RetryConflict(ctx, object, action, func() (bool, error) {
		lost, prefix := s.Key(lostFolder, d.Host), s.debtsOf(d.Host)
		resp, err := s.client.Txn(ctx).Then(clientv3.OpGet(lost, clientv3.WithCountOnly()), clientv3.OpGet(prefix,
			clientv3.WithPrefix(), clientv3.WithKeysOnly(), clientv3.WithLimit(1), clientv3.WithSort(clientv3.SortByKey, clientv3.SortDescend))).Commit()
		if err != nil {
			return false, Translate(ctx, object, action, err)
		}
		if owed = resp.Responses[0].GetResponseRange().Count > 0; !owed {
			return true, nil
		}
		last := 0
		for _, kv := range resp.Responses[1].GetResponseRange().Kvs {
			if last, err = strconv.Atoi(strings.TrimPrefix(string(kv.Key), prefix)); err != nil {
				return false, errs.NewOperator(string(kv.Key), "read its number", err, "delete the key")
			}
		}
		key := prefix + fmt.Sprintf("%010d", last+1)
		done, err := s.client.Txn(ctx).If(Present(lost), Absent(key)).Then(clientv3.OpPut(key, value)).Commit()
		return err == nil && done.Succeeded, Translate(ctx, object, action, err)
	})
	return owed && err == nil, err
}

// Debts gives what a host owes, in the order in which it is to be done; of all hosts when
// none is named.
func (s *Store) Debts(ctx context.Context, host string) ([]Debt, error) {
	prefix := s.Key(debtsFolder, "")
	if host != "" {
		prefix = s.debtsOf(host)
	}
	var out []Debt
	_, err := s.EachPage(ctx, prefix, func(kv *mvccpb.KeyValue) error {
		d := Debt{key: string(kv.Key)}
		if err := json.Unmarshal(kv.Value, &d); err != nil {
			return errs.NewOperator(string(kv.Key), "decode debt", err, "delete the key, and look at the host with `burrow drift` when it is back")
		}
		out = append(out, d)
		return nil
	})
	return out, Translate(ctx, "debts of lost hosts", "list", err)
}

// Owing gives the host that owes something of a uid, by uid.
func (s *Store) Owing(ctx context.Context) (map[string]string, error) {
	debts, err := s.Debts(ctx, "")
	out := map[string]string{}
	for _, d := range debts {
		if d.UID != "" {
			out[d.UID] = d.Host
		}
	}
	return out, err
}

// PayDebt strikes out a debt that Debts gave.
func (s *Store) PayDebt(ctx context.Context, d Debt) error {
	_, err := s.client.Delete(ctx, d.key)
	return Translate(ctx, d.Object, "strike out a debt of host "+d.Host, err)
}
