package etcdstate

import (
	"context"
	"crypto/cipher"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"burrow.dev/burrow/internal/errs"
)

// keyState is the value of masterkey: what all workers have to agree about.
type keyState struct {
	// Current is the id of the key that encrypts.
	Current string `json:"current"`
	// Next is the key that a rotation has chosen and not switched to yet.
	Next *nextKey `json:"next,omitempty"`
	// Retired were current once; what they encrypted may live on in backups.
	Retired []string `json:"retired,omitempty"`

	revision int64
}

// nextKey is where the key of a rotation that has begun is.
type nextKey struct {
	ID    string    `json:"id"`
	Place string    `json:"place"`
	Host  string    `json:"host"`
	By    string    `json:"by"`
	At    time.Time `json:"at"`
}

func (s *Secrets) stateKey() string { return s.store.Key("masterkey") }

// unchanged compares that the state still is what this was read as.
func (k *keyState) unchanged(key string) clientv3.Cmp {
	return clientv3.Compare(clientv3.ModRevision(key), "=", k.revision)
}

func decodeState(kvs []*mvccpb.KeyValue) (*keyState, error) {
	if len(kvs) == 0 {
		return nil, nil
	}
	var state keyState
	if err := json.Unmarshal(kvs[0].Value, &state); err != nil || state.Current == "" {
		return nil, errs.NewOperator(string(kvs[0].Key), "decode which master key is in use", fmt.Errorf("%w: not what burrow writes", errs.ErrInvalid), "restore etcd from a backup")
	}
	state.revision = kvs[0].ModRevision
	return &state, nil
}

func (s *Secrets) know(state *keyState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known = state
}

// state gives what is known of the keys in use; it may be old.
func (s *Secrets) state(ctx context.Context) (*keyState, error) {
	s.mu.Lock()
	known := s.known
	s.mu.Unlock()
	if known != nil {
		return known, nil
	}
	return s.readState(ctx)
}

// readState reads which key is in use; in a new installation, this worker's first one is
// from now on.
func (s *Secrets) readState(ctx context.Context) (*keyState, error) {
	resp, err := s.store.client.Get(ctx, s.stateKey())
	if err != nil {
		return nil, Translate(ctx, "master key", "read which is in use", err)
	}
	state, err := decodeState(resp.Kvs)
	if err == nil && state == nil {
		state, err = s.beginState(ctx)
	}
	if err == nil {
		s.know(state)
	}
	return state, err
}

// beginState writes the first state: the key of the secrets that are there already, or the
// ring's first.
func (s *Secrets) beginState(ctx context.Context) (*keyState, error) {
	state := &keyState{Current: s.ring.First()}
	prefix := s.store.Key("secrets", "")
	resp, err := s.store.client.Get(ctx, prefix, clientv3.WithPrefix(), clientv3.WithLimit(1))
	if err != nil {
		return nil, Translate(ctx, "master key", "find which is in use", err)
	}
	if len(resp.Kvs) > 0 {
		name := strings.TrimPrefix(string(resp.Kvs[0].Key), prefix)
		if box, err := unpack(name, resp.Kvs[0]); err == nil && box.KeyID != "" {
			if _, err := s.masterKey(ctx, box.KeyID, "secret "+name, "decrypt"); err != nil {
				return nil, err
			}
			state.Current = box.KeyID
		}
	}
	value, err := encode("master key", state)
	if err != nil {
		return nil, err
	}
	key := s.stateKey()
	txn, err := s.store.client.Txn(ctx).If(Absent(key)).Then(clientv3.OpPut(key, value)).Else(clientv3.OpGet(key)).Commit()
	if err != nil {
		return nil, Translate(ctx, "master key", "note which is in use", err)
	}
	if txn.Succeeded {
		state.revision = txn.Header.Revision
		return state, nil
	}
	return decodeState(txn.Responses[0].GetResponseRange().Kvs)
}

// masterKey gives a key by its id, looking for it again when this worker has it not: a
// rotation may have put it there a moment ago.
func (s *Secrets) masterKey(ctx context.Context, id, object, action string) (cipher.AEAD, error) {
	if aead, ok := s.ring.Key(id); ok {
		return aead, nil
	}
	if err := s.ring.Look(ctx, id); err != nil {
		return nil, err
	}
	if aead, ok := s.ring.Key(id); ok {
		return aead, nil
	}
	return nil, errs.NewOperator(object, action,
		fmt.Errorf("it needs master key %s, and this worker has only %s", id, strings.Join(s.ring.IDs(), ", ")),
		"copy the master key from a worker that has it to "+s.ring.Place(id)+", mode 0600; no restart is needed")
}
