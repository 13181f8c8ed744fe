package guest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/internal/errs"
)

var errHostKey = errors.New("it shows another host key than the pinned one")

// login opens SSH sessions as the server's login user, with its management key, to a
// guest that shows one of the pinned host keys and nothing else.
type login struct {
	server   activities.Server
	config   ssh.ClientConfig
	pinned   [][]byte
	patience time.Duration

	mu sync.Mutex
	// wrongSince is when the host first showed a wrong key with no right one in between.
	wrongSince time.Time
}

func (a *Activities) login(ctx context.Context, in WaitReadyIn) (*login, error) {
	l := &login{server: in.Server, patience: a.o.HostKeyPatience}
	var algorithms []string
	for _, line := range in.HostKeys {
		key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(line))
		if err != nil {
			return nil, errs.NewPermanent(in.Server.Ref(), "read pinned host key", err, "")
		}
		l.pinned = append(l.pinned, key.Marshal())
		algorithms = append(algorithms, hostKeyAlgorithms(key.Type())...)
	}
	if len(l.pinned) == 0 {
		return nil, errs.NewPermanent(in.Server.Ref(), "log in", errs.Reason("no host key is pinned"), "")
	}
	signer, err := a.o.Keys.Management(ctx, in.Server.UID)
	if err != nil {
		return nil, errs.New(errs.ClassOf(err), in.Server.Ref(), "load management key", err, "")
	}
	l.config = ssh.ClientConfig{
		User: in.Login, Auth: []ssh.AuthMethod{ssh.PublicKeys(signer)},
		HostKeyAlgorithms: algorithms, HostKeyCallback: l.checkHostKey,
		ClientVersion: "SSH-2.0-burrow",
	}
	return l, nil
}

// hostKeyAlgorithms are the signature algorithms that a key of a type can be asked for.
func hostKeyAlgorithms(keyType string) []string {
	if keyType == ssh.KeyAlgoRSA {
		return []string{ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256}
	}
	return []string{keyType}
}

func (l *login) checkHostKey(_ string, _ net.Addr, key ssh.PublicKey) error {
	blob := key.Marshal()
	if !slices.ContainsFunc(l.pinned, func(p []byte) bool { return bytes.Equal(p, blob) }) {
		return errHostKey
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wrongSince = time.Time{}
	return nil
}

// connect logs in on conn and proves it by a command that does nothing: while a guest
// boots, PAM may let the key pass and close the session.
func (l *login) connect(conn net.Conn, p *progress) (*ssh.Client, error) {
	if err := conn.SetDeadline(time.Now().Add(handshakeTimeout)); err != nil {
		return nil, err
	}
	seen := &bannerConn{Conn: conn, onBanner: func() { p.reached(stageLogin) }}
	c, chans, reqs, err := ssh.NewClientConn(seen, l.server.Name, &l.config)
	if err != nil {
		return nil, l.explain(err, p)
	}
	client := ssh.NewClient(c, chans, reqs)
	if _, err := command(client, ":"); err != nil {
		_ = client.Close()
		p.failed(stageLogin, fmt.Errorf("login is not yet let through: %w", err))
		return nil, err
	}
	return client, nil
}

// explain says what a failed handshake means; most mean "not yet".
func (l *login) explain(err error, p *progress) error {
	if wrongKey(err) {
		return l.wrongKey(p)
	}
	if strings.Contains(err.Error(), "unable to authenticate") {
		// cloud-init installs the key a while after sshd has started.
		err = fmt.Errorf("permission denied for user %s (is the management key installed yet?)", l.config.User)
	}
	p.failed(stageLogin, err)
	return err
}

// wrongKey also covers a host that has no key of a pinned type at all.
func wrongKey(err error) bool {
	if errors.Is(err, errHostKey) {
		return true
	}
	var negotiation *ssh.AlgorithmNegotiationError
	return errors.As(err, &negotiation) && strings.Contains(err.Error(), "host key")
}

// wrongKey counts from when the host began to show a wrong key.
func (l *login) wrongKey(p *progress) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	p.failed(stageLogin, errHostKey)
	if l.wrongSince.IsZero() {
		l.wrongSince = time.Now()
	}
	if time.Since(l.wrongSince) < l.patience {
		return errHostKey
	}
	return &finalError{errs.NewOperator(l.server.Ref(), "log in", errHostKey, fmt.Sprintf(
		"another machine may answer for its address, or the image does not run cloud-init; look at burrow console %s", l.server.Name))}
}

// bannerConn tells when the other side has begun to speak SSH.
type bannerConn struct {
	net.Conn
	once     sync.Once
	onBanner func()
}

func (c *bannerConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.once.Do(c.onBanner)
	}
	return n, err
}

// maxOutput bounds what a guest's command may answer.
const maxOutput = 256 << 10

// command runs a command and gives its output. A failed one is *ssh.ExitError.
func command(client *ssh.Client, text string) (string, error) {
	session, err := client.NewSession()
	if err != nil {
		return "", err
	}
	defer session.Close()
	out := &bounded{left: maxOutput}
	session.Stdout = out
	err = session.Run(text)
	return out.String(), err
}

// bounded keeps the first bytes and lets the rest go by. The buffer is not embedded: io.Copy
// would use its ReadFrom, which knows no bound.
type bounded struct {
	kept bytes.Buffer
	left int
	over bool   // there was more
	full func() // called at the first byte too many; may be nil
}

// String is what was kept.
func (b *bounded) String() string { return b.kept.String() }

func (b *bounded) Write(p []byte) (int, error) {
	n := min(len(p), b.left)
	b.left -= n
	_, _ = b.kept.Write(p[:n])
	if n < len(p) && !b.over {
		b.over = true
		if b.full != nil {
			b.full()
		}
	}
	return len(p), nil
}
