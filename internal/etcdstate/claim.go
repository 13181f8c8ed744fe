package etcdstate

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"burrow.dev/burrow/internal/errs"
)

// claim is the value of claims/<kind>/<name>.
type claim struct {
	WorkflowID string    `json:"workflowId"`
	Since      time.Time `json:"since"`
}

// BusyError says who holds what was to be claimed. It is errs.ErrBusy.
type BusyError struct {
	// Key is the resource ("server/db"), Holder the workflow ID that has it, since Since.
	Key, Holder string
	Since       time.Time
}

// Error says what a busy resource says too: what is running, since when.
func (e *BusyError) Error() string {
	return fmt.Sprintf("%s: claimed by %s, started %s", errs.ErrBusy, e.Holder, e.Since.UTC().Format(time.RFC3339))
}

// Is makes errors.Is(err, errs.ErrBusy) true.
func (e *BusyError) Is(target error) bool { return target == errs.ErrBusy }

// Claim takes resources ("server/db") for an operation that touches several, all or none
// in one transaction. Those it already has stay its own. Held by another: a *BusyError,
// permanent, about the first of them. At most MaxOps keys.
func (s *Store) Claim(ctx context.Context, workflowID string, keys ...string) error {
	object := "claims of " + workflowID
	value, err := encode(object, claim{WorkflowID: workflowID, Since: time.Now().UTC()})
	if err != nil {
		return err
	}
	return RetryConflict(ctx, object, "take", func() (bool, error) {
		held, err := s.readClaims(ctx, object, keys)
		if err != nil {
			return false, err
		}
		var cmps []clientv3.Cmp
		var puts []clientv3.Op
		for i, key := range keys {
			full := s.Key("claims", key)
			switch h := held[i]; {
			case h == nil:
				cmps, puts = append(cmps, Absent(full)), append(puts, clientv3.OpPut(full, value))
			case h.WorkflowID == workflowID:
				// Written again, so that who believes it abandoned (DropClaim) sees that it is not.
				cmps = append(cmps, clientv3.Compare(clientv3.ModRevision(full), "=", h.revision))
				again, err := encode(object, h.claim)
				if err != nil {
					return false, err
				}
				puts = append(puts, clientv3.OpPut(full, again))
			default:
				return false, errs.New(errs.Permanent, key, "claim", &BusyError{Key: key, Holder: h.WorkflowID, Since: h.Since},
					"follow it: burrow watch "+h.WorkflowID)
			}
		}
		if len(puts) == 0 {
			return true, nil
		}
		resp, err := s.client.Txn(ctx).If(cmps...).Then(puts...).Commit()
		return err == nil && resp.Succeeded, Translate(ctx, object, "take", err)
	})
}

// Unclaim gives back those of the keys that the operation has. None is success.
func (s *Store) Unclaim(ctx context.Context, workflowID string, keys ...string) error {
	object := "claims of " + workflowID
	return RetryConflict(ctx, object, "give back", func() (bool, error) {
		held, err := s.readClaims(ctx, object, keys)
		if err != nil {
			return false, err
		}
		var cmps []clientv3.Cmp
		var deletes []clientv3.Op
		for i, key := range keys {
			if h := held[i]; h != nil && h.WorkflowID == workflowID {
				full := s.Key("claims", key)
				cmps = append(cmps, clientv3.Compare(clientv3.ModRevision(full), "=", h.revision))
				deletes = append(deletes, clientv3.OpDelete(full))
			}
		}
		if len(deletes) == 0 {
			return true, nil
		}
		resp, err := s.client.Txn(ctx).If(cmps...).Then(deletes...).Commit()
		return err == nil && resp.Succeeded, Translate(ctx, object, "give back", err)
	})
}

type heldClaim struct {
	claim
	revision int64
}

// readClaims gives one entry a key, nil where nobody holds it.
func (s *Store) readClaims(ctx context.Context, object string, keys []string) ([]*heldClaim, error) {
	ops := make([]clientv3.Op, len(keys))
	for i, key := range keys {
		ops[i] = clientv3.OpGet(s.Key("claims", key))
	}
	resp, err := s.client.Txn(ctx).Then(ops...).Commit()
	if err != nil {
		return nil, Translate(ctx, object, "read", err)
	}
	out := make([]*heldClaim, len(keys))
	for i, r := range resp.Responses {
		for _, kv := range r.GetResponseRange().Kvs {
			out[i] = &heldClaim{revision: kv.ModRevision}
			if err := json.Unmarshal(kv.Value, &out[i].claim); err != nil {
				return nil, errs.NewOperator(keys[i], "decode claim", err, "")
			}
		}
	}
	return out, nil
}
