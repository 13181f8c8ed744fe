package guest

import (
	"bytes"
	"context"
	"errors"
	"net"
	"time"

	"golang.org/x/crypto/ssh"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/manifest"
)

// ShellIn is a guest that burrow logs in to, at an address that has answered.
type ShellIn struct {
	Server   activities.Server
	Network  string
	Address  string
	Login    string
	HostKeys []string
}

// Shell is a login on a guest, with the management key and the pinned host key. Not safe for
// concurrent use.
type Shell struct {
	conn   net.Conn
	client *ssh.Client
	stop   func() bool
}

// Shell logs in once; what fails is tried again by the caller. Another host key than the
// pinned one is put up with as long as for WaitReady, and is then Operator. When ctx ends,
// so does the login.
func (a *Activities) Shell(ctx context.Context, in ShellIn) (*Shell, error) {
	l, err := a.login(ctx, WaitReadyIn{Server: in.Server, Login: in.Login, HostKeys: in.HostKeys, Readiness: manifest.ReadinessSSH})
	if err != nil {
		return nil, err
	}
	l.patience = 0 // it showed the right one before
	dial, cancel := context.WithTimeout(ctx, dialTimeout)
	conn, err := a.o.Dialer.DialNetwork(dial, in.Network, net.JoinHostPort(in.Address, sshPort))
	cancel()
	if err != nil {
		return nil, err
	}
	s := &Shell{conn: conn, stop: context.AfterFunc(ctx, func() { _ = conn.Close() })}
	p := &progress{}
	if s.client, err = l.connect(conn, p); err != nil {
		_ = s.Close()
		var final *finalError
		if errors.As(err, &final) {
			return nil, final.err
		}
		if _, last := p.now(); last != nil {
			err = last
		}
		return nil, err
	}
	return s, nil
}

// Run runs a command as the login's user, and gives the first bytes of what it prints, at
// most most, and its exit status. One that prints more is cut off, and its status is not known:
// 0. An error is the connection's: the command may have run.
func (s *Shell) Run(command string, stdin []byte, most int) (out []byte, exit int, err error) {
	if err := s.conn.SetDeadline(time.Now().Add(answerTimeout)); err != nil {
		return nil, 0, err
	}
	session, err := s.client.NewSession()
	if err != nil {
		return nil, 0, err
	}
	defer session.Close()
	answer := &bounded{left: most, full: func() { _ = session.Close() }} // nobody reads on for as long as it goes on
	session.Stdout = answer
	if stdin != nil {
		session.Stdin = bytes.NewReader(stdin)
	}
	err = session.Run(command)
	var failed *ssh.ExitError
	switch {
	case answer.over:
		return answer.kept.Bytes(), 0, nil
	case errors.As(err, &failed):
		return answer.kept.Bytes(), failed.ExitStatus(), nil
	}
	return answer.kept.Bytes(), 0, err
}

// Close ends the login.
func (s *Shell) Close() error {
	s.stop()
	if s.client != nil {
		return s.client.Close()
	}
	return s.conn.Close()
}
