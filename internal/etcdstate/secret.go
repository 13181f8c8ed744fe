package etcdstate

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"burrow.dev/burrow/internal/errs"
)

// secretName allows folders: "server-keys/<uid>".
var secretName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)*$`)

// nextRestore is what to do about a secret that is gone or damaged.
const nextRestore = "setting a secret is not supported yet; restore etcd from a copy that has it"

// Secrets are values that etcd holds encrypted: AES-256-GCM under the master key, with the
// secret's name as additional data, so that no value can be passed off under another name.
// Only workers have the master key.
type Secrets struct {
	store *Store
	aead  cipher.AEAD
	keyID string
}

// sealed is the value of secrets/<name>.
type sealed struct {
	// KeyID names the master key (a hash of it), so that a wrong one is told apart from damage.
	KeyID string `json:"keyId"`
	Nonce []byte `json:"nonce"`
	Data  []byte `json:"data"`
}

// OpenSecrets makes Secrets under the master key in a file of 32 bytes, 0600.
func OpenSecrets(store *Store, masterKeyFile string) (*Secrets, error) {
	key, err := readMasterKey(masterKeyFile)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, errs.NewPermanent(masterKeyFile, "use master key", err, "")
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return nil, errs.NewPermanent(masterKeyFile, "use master key", err, "")
	}
	id := sha256.Sum256(append([]byte("burrow master key id\x00"), key...))
	return &Secrets{store: store, aead: aead, keyID: hex.EncodeToString(id[:8])}, nil
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
	return s.open(name, resp.Kvs[0])
}

// Put writes a secret, whatever was there.
func (s *Secrets) Put(ctx context.Context, name string, value []byte) error {
	key, data, err := s.seal(name, value)
	if err != nil {
		return err
	}
	_, err = s.store.client.Put(ctx, key, data)
	return Translate(ctx, "secret "+name, "write", err)
}

// PutIfAbsent writes a secret unless there is one, and gives the one that is there after,
// in one transaction: of several callers all get the same.
func (s *Secrets) PutIfAbsent(ctx context.Context, name string, value []byte) (stored []byte, err error) {
	key, data, err := s.seal(name, value)
	if err != nil {
		return nil, err
	}
	resp, err := s.store.client.Txn(ctx).If(Absent(key)).Then(clientv3.OpPut(key, data)).Else(clientv3.OpGet(key)).Commit()
	if err != nil {
		return nil, Translate(ctx, "secret "+name, "write", err)
	}
	if resp.Succeeded {
		return value, nil
	}
	return s.open(name, resp.Responses[0].GetResponseRange().Kvs[0])
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

func (s *Secrets) seal(name string, value []byte) (key, data string, err error) {
	if key, err = s.key(name); err != nil {
		return "", "", err
	}
	nonce := make([]byte, s.aead.NonceSize())
	if _, err := rand.Read(nonce); err != nil {
		return "", "", errs.NewTransient("secret "+name, "encrypt", err)
	}
	data, err = encode("secret "+name, sealed{KeyID: s.keyID, Nonce: nonce, Data: s.aead.Seal(nil, nonce, value, []byte(name))})
	return key, data, err
}

func (s *Secrets) open(name string, kv *mvccpb.KeyValue) ([]byte, error) {
	var box sealed
	if err := json.Unmarshal(kv.Value, &box); err != nil {
		return nil, errs.NewOperator("secret "+name, "decode", errors.New("not an encrypted value"), nextRestore)
	}
	if box.KeyID != s.keyID {
		return nil, errs.NewOperator("secret "+name, "decrypt", fmt.Errorf("it is encrypted under master key %s, this worker has %s", box.KeyID, s.keyID),
			"give this worker the master key that the others have")
	}
	if len(box.Nonce) != s.aead.NonceSize() {
		return nil, errs.NewOperator("secret "+name, "decrypt", errors.New("damaged"), nextRestore)
	}
	value, err := s.aead.Open(nil, box.Nonce, box.Data, []byte(name))
	if err != nil {
		return nil, errs.NewOperator("secret "+name, "decrypt", errors.New("damaged, or moved from another name"), nextRestore)
	}
	return value, nil
}
