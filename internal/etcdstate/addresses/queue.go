package addresses

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"

	"burrow.dev/burrow/internal/addrspace"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/etcdstate"
)

const (
	// txnAddresses is the most addresses one transaction allocates, and releaseAddresses
	// the most it takes back: three comparisons or three writes each, and the counts of
	// their blocks; etcd takes 128.
	txnAddresses     = 40
	releaseAddresses = 30
	// wholeRequest is how many wants of one request always fit into one transaction, even
	// when each is in a block of its own.
	wholeRequest = 31
	// attempts bounds how often a request is tried. With the lock held, only a lost
	// response, a lost lock or a change of the network makes another one necessary.
	attempts = 8
	// retryPause is between them, at most.
	retryPause = 50 * time.Millisecond
)

var (
	// errLockLost: this process was stopped or cut off for longer than its lease, and
	// whoever holds the lock now decides.
	errLockLost = errors.New("the lock was lost")
	// errChanged: a transaction found something else than what it was computed from.
	errChanged = errors.New("changed while the lock was held")
	// errAnswerLost: nobody knows whether the call has had its effect, and since its lock is
	// gone, others may have undone it. Made again by us, it could have another; so its caller
	// decides.
	errAnswerLost = errs.NewTransient("addresses", "write", fmt.Errorf("%w: the answer of the transaction was lost, and the lock with it", errs.ErrUnavailable))
)

// request is one call of Allocate or Release. got and err may be read when done is closed.
type request struct {
	ctx     context.Context
	wants   []addrspace.Want
	release []string
	tries   int
	// uncertain: a transaction of it may have succeeded, its answer was lost.
	uncertain bool
	got       []netip.Prefix // one a want; invalid until it has its address
	err       error
	done      chan struct{}
}

func newRequest(ctx context.Context, wants []addrspace.Want, release []string) *request {
	return &request{ctx: ctx, wants: wants, release: release, got: make([]netip.Prefix, len(wants)), done: make(chan struct{})}
}

func (r *request) finished() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

func (r *request) finish(err error) {
	if err != nil && r.uncertain {
		err = errAnswerLost
	}
	r.err = err
	close(r.done)
}

// queue is what waits for one network in this process. While there is anything, one
// goroutine serves it; serving says whether it runs.
type queue struct {
	waiting []*request
	serving bool
}

// submit puts a request into its network's queue and waits until it is served. When its
// context ends first, it may have been served nevertheless: its owner asks again, or
// releases.
func (a *Allocator) submit(k keys, r *request) error {
	a.mu.Lock()
	if a.ctx.Err() != nil {
		a.mu.Unlock()
		return closed(k)
	}
	q := a.queues[k.uid]
	if q == nil {
		q = &queue{}
		a.queues[k.uid] = q
	}
	q.waiting = append(q.waiting, r)
	if !q.serving {
		q.serving = true
		a.serving.Go(func() { a.serve(k, q) })
	}
	a.mu.Unlock()
	select {
	case <-r.done:
		return r.err
	case <-r.ctx.Done():
		return etcdstate.Translate(r.ctx, "network "+k.uid, "wait for its lock", r.ctx.Err())
	}
}

func closed(k keys) error {
	return errs.NewTransient("network "+k.uid, "allocate", errors.New("this worker is stopping"))
}

// serve takes the lock and serves all that waits, again and again until nothing does. The
// lock is given back each time, so that other processes have their turn.
func (a *Allocator) serve(k keys, q *queue) {
	for {
		ctx, cancel := context.WithTimeout(a.ctx, holdTimeout)
		held, err := a.store.Lock(ctx, k.lock())
		batch := a.take(q, err == nil)
		if err == nil {
			err = a.serveHeld(ctx, k, held, batch)
			held.Unlock(ctx)
		}
		cancel()
		a.settle(k, q, batch, err)
		if a.idle(k, q) {
			return
		}
	}
}

// settle finishes what a hold left unfinished with err, or puts it back for another hold
// when only the lock was lost.
func (a *Allocator) settle(k keys, q *queue, batch []*request, err error) {
	again := unfinished(batch)
	if !errors.Is(err, errLockLost) {
		for _, r := range again {
			r.finish(err)
		}
		return
	}
	again = slices.DeleteFunc(again, func(r *request) bool {
		r.tries++
		if r.tries < attempts && !r.uncertain {
			return false
		}
		r.finish(errs.NewTransient("network "+k.uid, "hold its lock", errLockLost))
		return true
	})
	a.mu.Lock()
	defer a.mu.Unlock()
	q.waiting = append(again, q.waiting...)
}

// take removes from the queue what one hold serves: whole requests, in order, up to
// txnAddresses; all of them when the lock was not to be had. Those that nobody waits for
// any more are dropped.
func (a *Allocator) take(q *queue, locked bool) []*request {
	a.mu.Lock()
	defer a.mu.Unlock()
	var batch []*request
	size := 0
	for len(q.waiting) > 0 {
		r := q.waiting[0]
		n := len(r.wants) + len(r.release)
		if locked && len(batch) > 0 && size+n > txnAddresses {
			break
		}
		q.waiting = q.waiting[1:]
		if r.ctx.Err() != nil {
			r.finish(r.ctx.Err())
			continue
		}
		batch, size = append(batch, r), size+n
	}
	return batch
}

// idle ends the serving of a queue when nothing waits.
func (a *Allocator) idle(k keys, q *queue) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ctx.Err() != nil {
		for _, r := range q.waiting {
			r.finish(closed(k))
		}
		q.waiting = nil
	}
	if len(q.waiting) > 0 {
		return false
	}
	q.serving = false
	delete(a.queues, k.uid)
	return true
}

// serveHeld serves a batch under the lock. A try that failed is made again from fresh
// readings: a response that was lost shows as an owner that has its address. It returns
// the error of what it left unfinished.
func (a *Allocator) serveHeld(ctx context.Context, k keys, held *etcdstate.Held, batch []*request) error {
	h := &hold{Allocator: a, k: k, held: held}
	for attempt := 1; ; attempt++ {
		err := h.releaseAll(ctx, unfinished(batch))
		if err == nil {
			err = h.allocateAll(ctx, unfinished(batch))
		}
		if err == nil {
			return nil
		}
		again := errors.Is(err, errChanged) || errors.Is(err, errs.ErrUnavailable)
		if !again || attempt == attempts || pause(ctx) != nil {
			if errors.Is(err, errChanged) {
				err = errs.NewTransient("network "+k.uid, "write addresses", fmt.Errorf("%w: %w", errs.ErrConflict, err))
			}
			return err
		}
	}
}

// underLock runs fn with a network's lock, from fresh readings again when something had
// changed or a response was lost: fn must know its own work when it finds it. When the lock
// was lost as well, what may have had its effect is not run again.
func (a *Allocator) underLock(ctx context.Context, k keys, action string, fn func(*hold) error) error {
	for attempt := 1; ; attempt++ {
		uncertain, err := a.once(ctx, k, fn)
		overtaken := errors.Is(err, errChanged) || errors.Is(err, errLockLost)
		switch {
		case err != nil && uncertain:
			return errAnswerLost
		case !overtaken && !errors.Is(err, errs.ErrUnavailable):
			return err
		case attempt == attempts || pause(ctx) != nil:
			if overtaken {
				err = errs.NewTransient("network "+k.uid, action, fmt.Errorf("%w: %w", errs.ErrConflict, err))
			}
			return err
		}
	}
}

// once is one hold of the lock. uncertain: a transaction under it may have succeeded though
// there is an error.
func (a *Allocator) once(ctx context.Context, k keys, fn func(*hold) error) (uncertain bool, err error) {
	held, err := a.store.Lock(ctx, k.lock())
	if err != nil {
		return false, err
	}
	defer held.Unlock(ctx)
	h := &hold{Allocator: a, k: k, held: held}
	for try := 1; ; try++ {
		err := fn(h)
		uncertain = uncertain || h.unknown
		if again := errors.Is(err, errChanged) || errors.Is(err, errs.ErrUnavailable); !again || try == attempts || pause(ctx) != nil {
			return uncertain, err
		}
	}
}

func unfinished(batch []*request) []*request {
	return slices.DeleteFunc(slices.Clone(batch), (*request).finished)
}

func pause(ctx context.Context) error {
	timer := time.NewTimer(rand.N(retryPause))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
