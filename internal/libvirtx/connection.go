package libvirtx

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
	"libvirt.org/go/libvirt"

	"burrow.dev/burrow/internal/errs"
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
	// copyTimeout bounds a full copy or an upload of a whole image.
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
	locks *keyedLocks
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
		locks: newKeyedLocks(), pools: map[string]*semaphore.Weighted{},
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

// Ping asks libvirtd for a sign of life.
func (c *Connection) Ping(ctx context.Context) error {
	_, err := do(ctx, c, call{object: "libvirt " + c.uri, action: "ping"}, func(conn *libvirt.Connect) (uint32, error) {
		return conn.GetLibVersion()
	})
	return err
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

// call describes a call for its error, its lock and its deadline.
type call struct {
	object string // "domain db (7d0c…)", "volume data-1.qcow2 in pool burrow"
	action string // infinitive: "define"
	key    string // lock key; empty: none
	pool   string // takes width of this pool; empty: none
	width  int64
	limit  time.Duration // 0: lookTimeout
}

// enter takes what the call needs to itself, and gives the release.
func (c *Connection) enter(ctx context.Context, cl call) (func(), error) {
	unlock, err := c.locks.lock(ctx, cl.key)
	if err != nil {
		return nil, err
	}
	leave, err := c.enterPool(ctx, cl.pool, cl.width)
	if err != nil {
		unlock()
		return nil, err
	}
	return func() { leave(); unlock() }, nil
}

// do runs fn on the connection, with a deadline and under the locks of the call. When the
// caller's time is over it returns, and fn goes on alone: the locks are held until
// libvirtd has answered, and what fn then returns is closed if it can be.
func do[T any](ctx context.Context, c *Connection, cl call, fn func(*libvirt.Connect) (T, error)) (T, error) {
	return doOn(ctx, c, cl, func(_ *session, conn *libvirt.Connect) (T, error) { return fn(conn) })
}

// doOn is do for what must know when the connection it was made on has ended.
func doOn[T any](ctx context.Context, c *Connection, cl call, fn func(*session, *libvirt.Connect) (T, error)) (T, error) {
	var zero T
	if cl.limit == 0 {
		cl.limit = lookTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, cl.limit)
	defer cancel()
	release, err := c.enter(ctx, cl)
	if err != nil {
		return zero, errs.NewTransient(cl.object, cl.action, errors.Join(errs.ErrBusy, err))
	}
	s, conn, err := c.acquire(ctx)
	if err != nil {
		release()
		return zero, translate(cl, err)
	}
	type answer struct {
		value T
		err   error
	}
	answers := make(chan answer)
	c.calls.Add(1)
	go func() {
		defer c.calls.Done()
		v, err := fn(s, conn)
		_, _ = conn.Close()
		if isBroken(err) {
			s.end()
		}
		release()
		select {
		case answers <- answer{v, err}:
		case <-ctx.Done():
			if closer, ok := any(v).(io.Closer); ok && err == nil {
				_ = closer.Close()
			}
		}
	}()
	select {
	case a := <-answers:
		return a.value, translate(cl, a.err)
	case <-ctx.Done():
		return zero, errs.NewTransient(cl.object, cl.action,
			errors.Join(errs.Reason("libvirtd has not answered yet"), ctx.Err()))
	}
}
