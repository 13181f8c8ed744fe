package libvirtx

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
	"libvirt.org/go/libvirt"

	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/keylock"
)

// DefaultURI is the system-wide QEMU driver of this machine.
const DefaultURI = "qemu:///system"

const (
	// lookTimeout bounds calls that only look: libvirtd answers them in milliseconds,
	// in seconds when the machine is overloaded.
	lookTimeout = 30 * time.Second
	// defineTimeout bounds define and start: where /dev/kvm is closed to QEMU's user,
	// libvirt probes QEMU again for a minute and a half at each of them (pitfall 65).
	defineTimeout = 4 * time.Minute
	// createTimeout bounds making, growing and deleting a volume: qemu-img and fsync.
	createTimeout = 2 * time.Minute
	// copyTimeout bounds a full copy of a whole image.
	copyTimeout = time.Hour
	// keepaliveInterval and keepaliveCount: a libvirtd that hangs is given up after
	// 20 s, and every call that waits for it returns.
	keepaliveInterval = 5
	keepaliveCount    = 3
	// closeGrace is how long Close waits for calls that are still inside libvirt.
	closeGrace = 5 * time.Second
)

// Connection is one libvirtd, reached when first needed and again whenever it has
// restarted. It is safe for use by many goroutines at once.
type Connection struct {
	uri   string
	log   *slog.Logger
	locks keylock.Locks
	calls sync.WaitGroup

	mu      sync.Mutex
	session *session                       // nil: not connected
	attempt *attempt                       // not nil: an opening is under way
	pools   map[string]*semaphore.Weighted // see pool.go
	closed  bool
}

// session is one virConnect and the news of its end.
type session struct {
	conn *libvirt.Connect
	dead chan struct{}
	once sync.Once
}

func (s *session) end() { s.once.Do(func() { close(s.dead) }) }

func (s *session) ended() bool {
	select {
	case <-s.dead:
		return true
	default:
		return false
	}
}

// attempt is an opening that several callers wait for; err is set when done is closed.
type attempt struct {
	done chan struct{}
	err  error
}

// New makes a connection to uri; empty means DefaultURI. Nothing is opened yet.
func New(uri string, log *slog.Logger) *Connection {
	if uri == "" {
		uri = DefaultURI
	}
	if log == nil {
		log = slog.Default()
	}
	return &Connection{
		uri: uri, log: log.With("libvirt", uri),
		pools: map[string]*semaphore.Weighted{},
	}
}

// Close gives the connection back. Calls still inside libvirt are waited for, but
// not longer than a few seconds; later calls fail.
func (c *Connection) Close() error {
	c.mu.Lock()
	c.closed = true
	s := c.session
	c.session = nil
	c.mu.Unlock()
	if s != nil {
		c.retire(s)
	}
	done := make(chan struct{})
	go func() { c.calls.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-time.After(closeGrace):
		return errs.NewTransient("libvirt "+c.uri, "close", errs.Reason("calls still wait for libvirtd"))
	}
}

// acquire gives a session and a reference to its connection that the caller closes.
func (c *Connection) acquire(ctx context.Context) (*session, *libvirt.Connect, error) {
	for {
		c.mu.Lock()
		if c.closed {
			c.mu.Unlock()
			return nil, nil, errs.ErrUnavailable
		}
		if s := c.session; s != nil {
			if ref, err := s.reference(); err == nil {
				c.mu.Unlock()
				return s, ref, nil
			}
			c.session = nil
			c.mu.Unlock()
			c.retire(s)
			continue
		}
		if c.attempt == nil {
			c.attempt = &attempt{done: make(chan struct{})}
			c.calls.Add(1)
			go c.open(c.attempt)
		}
		a := c.attempt
		c.mu.Unlock()
		select {
		case <-a.done:
			if a.err != nil {
				return nil, nil, a.err
			}
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
	}
}

// reference gives a copy of the connection with a reference of its own, so that a call
// that outlives the session still has a connection under it.
func (s *session) reference() (*libvirt.Connect, error) {
	if s.ended() {
		return nil, errs.ErrUnavailable
	}
	if alive, err := s.conn.IsAlive(); err != nil || !alive {
		s.end()
		return nil, errs.ErrUnavailable
	}
	ref := *s.conn
	if err := ref.Ref(); err != nil {
		return nil, err
	}
	return &ref, nil
}

// open makes a session and ends the attempt. libvirt's open has no deadline: callers
// stop waiting by their own, and at most one opening is ever under way.
func (c *Connection) open(a *attempt) {
	defer c.calls.Done()
	s, err := dial(c.uri)
	c.mu.Lock()
	a.err = err
	c.attempt = nil
	keep := err == nil && !c.closed
	if keep {
		c.session = s
	}
	c.mu.Unlock()
	close(a.done)
	switch {
	case err != nil:
		c.log.Debug("libvirtd cannot be reached", "err", err)
	case keep:
		c.log.Debug("connected to libvirtd")
	default:
		c.retire(s)
	}
}

func dial(uri string) (*session, error) {
	if err := startEventLoop(); err != nil {
		return nil, errs.NewOperator("libvirt", "load library", err, "install libvirt0 (the host packages of burrow doctor)")
	}
	conn, err := libvirt.NewConnect(uri)
	if err != nil {
		return nil, err
	}
	s := &session{conn: conn, dead: make(chan struct{})}
	err = errors.Join(
		conn.SetKeepAlive(keepaliveInterval, keepaliveCount),
		conn.RegisterCloseCallback(func(*libvirt.Connect, libvirt.ConnectCloseReason) { s.end() }),
	)
	if err != nil {
		_, _ = conn.Close()
		return nil, err
	}
	return s, nil
}

// retire gives a session's connection back without keeping the caller waiting.
func (c *Connection) retire(s *session) {
	s.end()
	c.calls.Add(1)
	go func() {
		defer c.calls.Done()
		// The callback holds a reference; without this the connection would never go.
		_ = s.conn.UnregisterCloseCallback()
		_, _ = s.conn.Close()
	}()
}
