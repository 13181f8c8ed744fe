package cli

import (
	"bytes"
	"context"
	"errors"
	"net"
	"sync"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/gateway"
)

// agentBridge is an ssh-agent on a private socket: a server's management key, which signs
// on the worker, and the keys of the user's own agent.
//
//	ssh ──unix socket──▶ agentBridge ─┬─ gateway.AgentConn (management key)
//	                                  └─ $SSH_AUTH_SOCK    (the user's keys, if any)
type agentBridge struct {
	listener net.Listener
	serving  sync.WaitGroup

	mu    sync.Mutex
	conns map[net.Conn]struct{}
}

// serveAgent listens on socket, which must be in a private folder, until close.
func serveAgent(ctx context.Context, gw *gateway.Client, server, socket, userSocket string) (*agentBridge, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "unix", socket)
	if err != nil {
		return nil, errs.NewPermanent("server/"+server, "serve its key to ssh", err, "set TMPDIR to a shorter path")
	}
	b := &agentBridge{listener: l, conns: map[net.Conn]struct{}{}}
	b.serving.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			b.serving.Go(func() { b.serve(ctx, gw, server, userSocket, conn) })
		}
	})
	return b, nil
}

func (b *agentBridge) serve(ctx context.Context, gw *gateway.Client, server, userSocket string, conn net.Conn) {
	defer b.track(conn)()
	management, err := gw.AgentConn(ctx, server)
	if err != nil {
		return // ssh goes on with other keys, and says so when there is none
	}
	defer b.track(management)()
	keys := &joinedAgent{management: agent.NewClient(management)}
	if userSocket != "" {
		if user, err := net.Dial("unix", userSocket); err == nil {
			defer b.track(user)()
			keys.user = agent.NewClient(user)
		}
	}
	_ = agent.ServeAgent(keys, conn) // its error is how ssh closed the connection
}

// track remembers a connection, so that close can end it; the result ends it earlier.
func (b *agentBridge) track(conn net.Conn) (done func()) {
	b.mu.Lock()
	b.conns[conn] = struct{}{}
	b.mu.Unlock()
	return func() {
		b.mu.Lock()
		delete(b.conns, conn)
		b.mu.Unlock()
		_ = conn.Close()
	}
}

func (b *agentBridge) close() {
	_ = b.listener.Close()
	b.mu.Lock()
	for conn := range b.conns {
		_ = conn.Close()
	}
	b.mu.Unlock()
	b.serving.Wait()
}

// joinedAgent shows the keys of two agents as one. It changes neither.
type joinedAgent struct {
	management agent.ExtendedAgent
	user       agent.ExtendedAgent // nil: the user has none
}

// errNoChange answers what would change an agent.
var errNoChange = errors.New("this agent only signs")

// List gives the management key first: servers take few attempts.
func (a *joinedAgent) List() ([]*agent.Key, error) {
	keys, err := a.management.List()
	if a.user == nil {
		return keys, err
	}
	more, userErr := a.user.List()
	if err != nil && userErr != nil {
		return nil, errors.Join(err, userErr)
	}
	return append(keys, more...), nil
}

// Sign signs with the agent that has the key.
func (a *joinedAgent) Sign(key ssh.PublicKey, data []byte) (*ssh.Signature, error) {
	return a.SignWithFlags(key, data, 0)
}

// SignWithFlags signs with the agent that has the key.
func (a *joinedAgent) SignWithFlags(key ssh.PublicKey, data []byte, flags agent.SignatureFlags) (*ssh.Signature, error) {
	ours, err := a.management.List()
	for _, k := range ours {
		if bytes.Equal(k.Blob, key.Marshal()) {
			return a.management.SignWithFlags(key, data, flags)
		}
	}
	if a.user == nil {
		return nil, errors.Join(errors.New("no agent holds that key"), err)
	}
	return a.user.SignWithFlags(key, data, flags)
}

// Signers gives none: ssh asks by List and Sign.
func (a *joinedAgent) Signers() ([]ssh.Signer, error) { return nil, errNoChange }

// Add refuses.
func (a *joinedAgent) Add(agent.AddedKey) error { return errNoChange }

// Remove refuses.
func (a *joinedAgent) Remove(ssh.PublicKey) error { return errNoChange }

// RemoveAll refuses.
func (a *joinedAgent) RemoveAll() error { return errNoChange }

// Lock refuses.
func (a *joinedAgent) Lock([]byte) error { return errNoChange }

// Unlock refuses.
func (a *joinedAgent) Unlock([]byte) error { return errNoChange }

// Extension reaches the user's agent, whose keys may be bound to destinations.
func (a *joinedAgent) Extension(name string, contents []byte) ([]byte, error) {
	if a.user == nil {
		return nil, agent.ErrExtensionUnsupported
	}
	return a.user.Extension(name, contents)
}
