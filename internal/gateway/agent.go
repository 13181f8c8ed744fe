package gateway

import (
	"bytes"
	"errors"
	"net"
	"sync"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"burrow.dev/burrow/manifest"
)

// Agent implements the service: an ssh-agent that holds the management key of one
// server. The key signs; it never leaves the worker.
func (s *Server) Agent(stream tunnel) error {
	if s.deps.Keys == nil {
		return absent("management keys")
	}
	head, err := stream.Recv()
	if err != nil {
		return err
	}
	rec, err := record(stream.Context(), s.deps.Records, manifest.KindServer, head.GetServer())
	if err != nil {
		return err
	}
	signer, err := s.deps.Keys.Management(stream.Context(), rec.Metadata.UID)
	if err != nil {
		return err
	}
	near, far := net.Pipe()
	var serving sync.WaitGroup
	serving.Go(func() {
		// The error is how the client ended; closing the pipe is what it needs to know.
		_ = agent.ServeAgent(&keyAgent{signer, "burrow server/" + rec.Metadata.Name}, near)
		_ = near.Close()
	})
	defer serving.Wait()
	return carry(stream, far, "agent of server/"+rec.Metadata.Name)
}

// errReadOnly answers everything that would change the agent.
var errReadOnly = errors.New("this agent holds one key and takes no other")

// keyAgent is an agent with one key that cannot be changed.
type keyAgent struct {
	signer  ssh.Signer
	comment string
}

// List gives the one key.
func (a *keyAgent) List() ([]*agent.Key, error) {
	key := a.signer.PublicKey()
	return []*agent.Key{{Format: key.Type(), Blob: key.Marshal(), Comment: a.comment}}, nil
}

// Sign signs with the one key.
func (a *keyAgent) Sign(key ssh.PublicKey, data []byte) (*ssh.Signature, error) {
	return a.SignWithFlags(key, data, 0)
}

// SignWithFlags signs with the one key; the flags choose hashes of RSA keys, and ours are ed25519.
func (a *keyAgent) SignWithFlags(key ssh.PublicKey, data []byte, _ agent.SignatureFlags) (*ssh.Signature, error) {
	if !bytes.Equal(key.Marshal(), a.signer.PublicKey().Marshal()) {
		return nil, errors.New("this agent does not hold that key")
	}
	return a.signer.Sign(nil, data)
}

// Signers gives the one key.
func (a *keyAgent) Signers() ([]ssh.Signer, error) { return []ssh.Signer{a.signer}, nil }

// Add refuses.
func (a *keyAgent) Add(agent.AddedKey) error { return errReadOnly }

// Remove refuses.
func (a *keyAgent) Remove(ssh.PublicKey) error { return errReadOnly }

// RemoveAll refuses.
func (a *keyAgent) RemoveAll() error { return errReadOnly }

// Lock refuses.
func (a *keyAgent) Lock([]byte) error { return errReadOnly }

// Unlock refuses.
func (a *keyAgent) Unlock([]byte) error { return errReadOnly }

// Extension knows none.
func (a *keyAgent) Extension(string, []byte) ([]byte, error) {
	return nil, agent.ErrExtensionUnsupported
}
