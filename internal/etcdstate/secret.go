package etcdstate

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/keyring"
)

// secretName allows folders: "server-keys/<uid>".
var secretName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)*$`)

// nextRestore is what to do about a secret that is gone or damaged.
const nextRestore = "one of yours: burrow secret set; a server's keys: restore etcd from a backup, or delete the server and apply it again"

// Secrets are values that etcd holds encrypted: AES-256-GCM under a master key, with the
// secret's name as additional data, so that no value can be passed off under another name.
// Only workers have the master keys. Which key encrypts is written in etcd (masterkey), and
// every write compares that: none can happen under a key that a rotation has retired.
type Secrets struct {
	store *Store
	ring  *keyring.Ring

	mu    sync.Mutex
	known *keyState // as last read; a write that was based on an old one fails and reads again
}

// sealed is the value of secrets/<name>.
type sealed struct {
	// KeyID names the master key (a hash of it), so that a missing one is told apart from damage.
	KeyID string `json:"keyId"`
	Nonce []byte `json:"nonce"`
	Data  []byte `json:"data"`
	// Note is there on what people set.
	Note *note `json:"note,omitempty"`
}

// note says who set a secret, and when. It is not encrypted.
type note struct {
	At time.Time `json:"at"`
	By string    `json:"by"`
}

// OpenSecrets makes Secrets under the master keys of a ring.
func OpenSecrets(store *Store, ring *keyring.Ring) *Secrets {
	return &Secrets{store: store, ring: ring}
}

// Get gives a secret in clear. Absent: errs.ErrNotFound, permanent.
func (s *Secrets) Get(ctx context.Context, name string) ([]byte, error) {
	key, err := s.key(name)
	if err != nil {
		return nil, err
	}
	resp, err := s.store.client.Get(ctx, key)
	if err != nil {
		return nil, Translate(ctx, "secret "+name, "read", err)
	}
	if len(resp.Kvs) == 0 {
		return nil, errs.NewPermanent("secret "+name, "read", errs.ErrNotFound, nextRestore)
	}
	return s.open(ctx, name, resp.Kvs[0])
}

// Put writes a secret, whatever was there.
func (s *Secrets) Put(ctx context.Context, name string, value []byte) error {
	_, err := s.put(ctx, name, value, nil, nil)
	return err
}

// PutIfAbsent writes a secret unless there is one, and gives the one that is there after,
// in one transaction: of several callers all get the same.
func (s *Secrets) PutIfAbsent(ctx context.Context, name string, value []byte) (stored []byte, err error) {
	key, err := s.key(name)
	if err != nil {
		return nil, err
	}
	resp, err := s.put(ctx, name, value, nil, []clientv3.Cmp{Absent(key)}, clientv3.OpGet(key))
	if err != nil {
		return nil, err
	}
	if resp.Succeeded {
		return value, nil
	}
	return s.open(ctx, name, resp.Responses[1].GetResponseRange().Kvs[0])
}

// Delete removes a secret. None is success.
func (s *Secrets) Delete(ctx context.Context, name string) error {
	key, err := s.key(name)
	if err != nil {
		return err
	}
	_, err = s.store.client.Delete(ctx, key)
	return Translate(ctx, "secret "+name, "delete", err)
}

// List gives the names, sorted.
func (s *Secrets) List(ctx context.Context) ([]string, error) {
	prefix := s.store.Key("secrets", "")
	var names []string
	_, err := s.store.EachPage(ctx, prefix, func(kv *mvccpb.KeyValue) error {
		names = append(names, strings.TrimPrefix(string(kv.Key), prefix))
		return nil
	})
	return names, Translate(ctx, "secrets", "list", err)
}

func (s *Secrets) key(name string) (string, error) {
	if !secretName.MatchString(name) {
		return "", errs.NewPermanent(fmt.Sprintf("secret %q", name), "name", fmt.Errorf("%w name", errs.ErrInvalid),
			"use letters, digits, dot, dash and underscore")
	}
	return s.store.Key("secrets", name), nil
}

// put encrypts a value under the current master key and writes it, if cmps hold and that
// key still is the current one. When only cmps fail, it gives the answer with Succeeded
// false; the answers to otherwise begin at its second response.
func (s *Secrets) put(ctx context.Context, name string, value []byte, n *note, cmps []clientv3.Cmp, otherwise ...clientv3.Op) (*clientv3.TxnResponse, error) {
	key, err := s.key(name)
	if err != nil {
		return nil, err
	}
	var out *clientv3.TxnResponse
	err = RetryConflict(ctx, "secret "+name, "write", func() (bool, error) {
		state, err := s.state(ctx)
		if err != nil {
			return false, err
		}
		data, err := s.seal(ctx, state.Current, name, value, n)
		if err != nil {
			return false, err
		}
		resp, err := s.store.client.Txn(ctx).
			If(append([]clientv3.Cmp{state.unchanged(s.stateKey())}, cmps...)...).
			Then(clientv3.OpPut(key, data, clientv3.WithPrevKV())).
			Else(append([]clientv3.Op{clientv3.OpGet(s.stateKey())}, otherwise...)...).Commit()
		if err != nil {
			return false, Translate(ctx, "secret "+name, "write", err)
		}
		if !resp.Succeeded {
			now, err := decodeState(resp.Responses[0].GetResponseRange().Kvs)
			if err != nil {
				return false, err
			}
			if s.know(now); now == nil || now.revision != state.revision {
				return false, nil
			}
		}
		out = resp
		return true, nil
	})
	return out, err
}

// seal encrypts a value under a master key.
func (s *Secrets) seal(ctx context.Context, keyID, name string, value []byte, n *note) (string, error) {
	aead, err := s.masterKey(ctx, keyID, "secret "+name, "encrypt")
	if err != nil {
		return "", err
	}
	nonce := make([]byte, aead.NonceSize())
	if _, err := rand.Read(nonce); err != nil {
		return "", errs.NewTransient("secret "+name, "encrypt", err)
	}
	return encode("secret "+name, sealed{KeyID: keyID, Nonce: nonce, Data: aead.Seal(nil, nonce, value, []byte(name)), Note: n})
}

func (s *Secrets) open(ctx context.Context, name string, kv *mvccpb.KeyValue) ([]byte, error) {
	box, err := unpack(name, kv)
	if err != nil {
		return nil, err
	}
	aead, err := s.masterKey(ctx, box.KeyID, "secret "+name, "decrypt")
	if err != nil {
		return nil, err
	}
	if len(box.Nonce) != aead.NonceSize() {
		return nil, errs.NewOperator("secret "+name, "decrypt", errors.New("damaged"), nextRestore)
	}
	value, err := aead.Open(nil, box.Nonce, box.Data, []byte(name))
	if err != nil {
		return nil, errs.NewOperator("secret "+name, "decrypt", errors.New("damaged, or moved from another name"), nextRestore)
	}
	return value, nil
}

// unpack reads what a secret's key holds. Its error does not quote it.
func unpack(name string, kv *mvccpb.KeyValue) (sealed, error) {
	var box sealed
	if err := json.Unmarshal(kv.Value, &box); err != nil {
		return box, errs.NewOperator("secret "+name, "decode", errors.New("not an encrypted value"), nextRestore)
	}
	return box, nil
}
