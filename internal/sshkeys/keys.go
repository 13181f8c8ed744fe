// Package sshkeys makes and keeps the two keys of a server: the host key that its sshd
// shows and everybody pins, and the management key that readiness, Ansible and
// `burrow ssh` log in with. Both are ed25519, made once for a uid, and kept in the
// secret store only, so that neither history nor records ever hold them.
//
//	Ensure ──▶ secret "server-keys/<uid>" ──┬─ host key ──▶ seed ISO ──▶ guest's sshd
//	                                        └─ management key ──▶ ssh-agent of the gateway
//	                                                              public half ──▶ seed ISO
package sshkeys

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"strings"

	"golang.org/x/crypto/ssh"

	"burrow.dev/burrow/internal/errs"
)

// Comments of the public halves, as they stand in authorized_keys and known_hosts.
const (
	managementComment = "burrow"
	hostComment       = "burrow-host-key"
)

// Store is the part of the secret store that keys need.
type Store interface {
	// Get gives a secret; errs.ErrNotFound when there is none.
	Get(ctx context.Context, name string) ([]byte, error)
	// PutIfAbsent stores value unless the name is taken, and gives what is stored then.
	PutIfAbsent(ctx context.Context, name string, value []byte) ([]byte, error)
	// Delete deletes a secret.
	Delete(ctx context.Context, name string) error
}

// Keys are a server's keys.
type Keys struct {
	Host, Management ssh.Signer
	// HostPEM is the host's private key in OpenSSH's format, for the seed.
	HostPEM []byte
}

// HostKeyLine is the host's public key as it is pinned: "ssh-ed25519 AAAA…".
func (k Keys) HostKeyLine() string {
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(k.Host.PublicKey())))
}

// ManagementLine is the management key as a line of authorized_keys.
func (k Keys) ManagementLine() string {
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(k.Management.PublicKey()))) + " " + managementComment
}

// SecretName is where the keys of a server are kept.
func SecretName(uid string) string { return "server-keys/" + uid }

// Ensure gives the keys of a server, made when there were none. Callers that race get
// the same keys.
func Ensure(ctx context.Context, store Store, uid string) (Keys, error) {
	keys, err := Load(ctx, store, uid)
	if !errors.Is(err, errs.ErrNotFound) {
		return keys, err
	}
	made, err := generate()
	if err != nil {
		return Keys{}, errs.NewTransient("server "+uid, "make ssh keys", err)
	}
	stored, err := store.PutIfAbsent(ctx, SecretName(uid), made)
	if err != nil {
		return Keys{}, errs.NewTransient("server "+uid, "store ssh keys", err)
	}
	return parse(uid, stored)
}

// Load gives the keys of a server; errs.ErrNotFound when none were made.
func Load(ctx context.Context, store Store, uid string) (Keys, error) {
	value, err := store.Get(ctx, SecretName(uid))
	if err != nil {
		return Keys{}, errs.New(errs.ClassOf(err), "server "+uid, "load ssh keys", err, "")
	}
	return parse(uid, value)
}

// Delete forgets the keys of a server; none is success.
func Delete(ctx context.Context, store Store, uid string) error {
	if err := store.Delete(ctx, SecretName(uid)); err != nil && !errors.Is(err, errs.ErrNotFound) {
		return errs.New(errs.ClassOf(err), "server "+uid, "delete ssh keys", err, "")
	}
	return nil
}

// generate makes the stored form: two PEM blocks, the host's first.
func generate() ([]byte, error) {
	var out bytes.Buffer
	for _, comment := range []string{hostComment, managementComment} {
		_, private, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			return nil, err
		}
		block, err := ssh.MarshalPrivateKey(private, comment)
		if err != nil {
			return nil, err
		}
		if err := pem.Encode(&out, block); err != nil {
			return nil, err
		}
	}
	return out.Bytes(), nil
}

func parse(uid string, value []byte) (Keys, error) {
	var blocks [][]byte
	for {
		block, rest := pem.Decode(value)
		if block == nil {
			break
		}
		blocks, value = append(blocks, pem.EncodeToMemory(block)), rest
	}
	if len(blocks) != 2 {
		return Keys{}, damaged(uid)
	}
	host, err1 := ssh.ParsePrivateKey(blocks[0])
	management, err2 := ssh.ParsePrivateKey(blocks[1])
	if err1 != nil || err2 != nil {
		return Keys{}, damaged(uid) // a parser's error might quote the key
	}
	return Keys{Host: host, Management: management, HostPEM: blocks[0]}, nil
}

func damaged(uid string) error {
	return errs.NewPermanent("server "+uid, "read ssh keys",
		errs.Reason("%w: secret %s does not hold two private keys", errs.ErrInvalid, SecretName(uid)),
		"delete the server and apply it again")
}
