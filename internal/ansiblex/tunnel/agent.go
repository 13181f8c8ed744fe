package tunnel

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"net"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
)

// ServeAgent serves the ssh-agent protocol with signers until ctx ends: clients may list
// the keys and have data signed, nothing else. It closes l.
func ServeAgent(ctx context.Context, l net.Listener, signers []ssh.Signer) error {
	return serve(ctx, l, func(_ context.Context, conn net.Conn) {
		_ = agent.ServeAgent(readOnly(signers), conn)
	})
}

var errReadOnly = errors.New("this agent only lists keys and signs")

// readOnly is an agent whose keys cannot be changed, taken out or added to.
type readOnly []ssh.Signer

func (r readOnly) List() ([]*agent.Key, error) {
	var keys []*agent.Key
	for _, s := range r {
		k := s.PublicKey()
		keys = append(keys, &agent.Key{Format: k.Type(), Blob: k.Marshal(), Comment: "burrow"})
	}
	return keys, nil
}

func (r readOnly) Sign(key ssh.PublicKey, data []byte) (*ssh.Signature, error) {
	return r.SignWithFlags(key, data, 0)
}

// SignWithFlags signs; the flags choose a hash for RSA keys, which ours are not.
func (r readOnly) SignWithFlags(key ssh.PublicKey, data []byte, _ agent.SignatureFlags) (*ssh.Signature, error) {
	for _, s := range r {
		if bytes.Equal(s.PublicKey().Marshal(), key.Marshal()) {
			return s.Sign(rand.Reader, data)
		}
	}
	return nil, errors.New("no such key")
}

func (r readOnly) Extension(string, []byte) ([]byte, error) {
	return nil, agent.ErrExtensionUnsupported
}
func (r readOnly) Signers() ([]ssh.Signer, error) { return nil, errReadOnly }
func (r readOnly) Add(agent.AddedKey) error       { return errReadOnly }
func (r readOnly) Remove(ssh.PublicKey) error     { return errReadOnly }
func (r readOnly) RemoveAll() error               { return errReadOnly }
func (r readOnly) Lock([]byte) error              { return errReadOnly }
func (r readOnly) Unlock([]byte) error            { return errReadOnly }
