package libvirtx

import (
	"context"
	"errors"
	"io"
	"time"

	"libvirt.org/go/libvirt"

	"burrow.dev/burrow/internal/errs"
)

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
	unlock, err := c.locks.Lock(ctx, cl.key)
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
