package ansible

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"

	"golang.org/x/crypto/ssh"

	"burrow.dev/burrow/internal/ansiblex"
	"burrow.dev/burrow/internal/ansiblex/tunnel"
)

const sshPort = 22

// serve opens the run's two sockets. The function it returns ends all connections.
func (r *running) serve(ctx context.Context, f *ansiblex.Folder, log *ansiblex.Log, signers []ssh.Signer) (stop func(), err error) {
	dial, err := listen(f, f.DialSocket())
	if err != nil {
		return nil, err
	}
	sign, err := listen(f, f.AgentSocket())
	if err != nil {
		return nil, errors.Join(err, dial.Close())
	}
	ctx, cancel := context.WithCancel(ctx)
	server := &tunnel.Server{Dial: r.dial, Failed: func(name string, err error) { log.Printf("cannot reach %s: %v", name, err) }}
	var serving sync.WaitGroup
	report := func(err error) {
		if err != nil {
			r.a.o.Log.Error("run socket failed", "run", r.rec.ID, "error", err)
		}
	}
	serving.Go(func() { report(server.Serve(ctx, dial)) })
	serving.Go(func() { report(tunnel.ServeAgent(ctx, sign, signers)) })
	return func() { cancel(); serving.Wait() }, nil
}

func listen(f *ansiblex.Folder, path string) (net.Listener, error) {
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	if err := f.OwnSocket(path); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// dial reaches one of the run's servers, and no other.
func (r *running) dial(ctx context.Context, name string) (net.Conn, error) {
	for _, h := range r.in.Hosts {
		if h.Server.Name == name {
			return r.a.o.Dialer.DialNetwork(ctx, h.Network, net.JoinHostPort(h.Address, strconv.Itoa(sshPort)))
		}
	}
	return nil, fmt.Errorf("%q is not a server of this run", name)
}
