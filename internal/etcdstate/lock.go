package etcdstate

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
)

// unlockTimeout is short: when unlocking fails, the lease frees the lock.
const unlockTimeout = 2 * time.Second

// locks hands out etcd mutexes of one process. They share one session, and a mutex's key
// is its prefix and the session's lease, so two goroutines with one session would both
// "hold" it: a local gate a name stands in front (pitfalls 23 and 66).
type locks struct {
	client *clientv3.Client
	ttl    int

	mu      sync.Mutex
	session *concurrency.Session
	gates   map[string]*gate
}

// gate lets one goroutine through at a time; it is forgotten when nobody needs it.
type gate struct {
	turn  chan struct{}
	users int
}

func newLocks(client *clientv3.Client, ttl time.Duration) *locks {
	return &locks{client: client, ttl: max(1, int(ttl/time.Second)), gates: map[string]*gate{}}
}

// Held is a lock that was taken. The lock gives order only: whoever writes under it adds
// IsOwner to the comparisons, because a lease can run out while its holder is stopped.
type Held struct {
	locks   *locks
	name    string
	session *concurrency.Session
	key     string
	rev     int64 // the key's creation
	given   bool  // back, by a transaction of the holder's
}

// Lock takes the lock of a name ("ipam/<uid>") for this process and this goroutine, and
// waits for it as long as ctx allows. A holder that dies is waited for until its lease
// has run out. The caller unlocks.
func (s *Store) Lock(ctx context.Context, name string) (*Held, error) {
	l := s.locks
	if err := l.enter(ctx, name); err != nil {
		return nil, Translate(ctx, "lock "+name, "take", err)
	}
	for {
		held, err := l.acquire(ctx, name, s.Key("locks", name))
		if err == nil {
			return held, nil
		}
		// A session that ended while this process was stopped or cut off: a new one.
		if errors.Is(err, concurrency.ErrSessionExpired) || errors.Is(err, rpctypes.ErrLeaseNotFound) {
			continue
		}
		l.leave(name)
		return nil, Translate(ctx, "lock "+name, "take", err)
	}
}

func (l *locks) acquire(ctx context.Context, name, prefix string) (*Held, error) {
	session, err := l.current(ctx)
	if err != nil {
		return nil, err
	}
	q := &queued{client: l.client, session: session, prefix: prefix + "/"}
	if err := q.wait(ctx); err != nil {
		// Unless it was taken back, our key may be in the queue, and others would wait
		// behind it for as long as we live.
		if !q.takeBack(ctx) {
			l.abandon(session)
		}
		return nil, err
	}
	return &Held{locks: l, name: name, session: session, key: q.key, rev: q.rev}, nil
}

// IsOwner compares that the lock is still held; part of every transaction under it.
func (h *Held) IsOwner() clientv3.Cmp {
	return clientv3.Compare(clientv3.CreateRevision(h.key), "=", h.rev)
}

// Key is the key whose presence is this hold of the lock.
func (h *Held) Key() string { return h.key }

// GiveBack is an operation for the last transaction under the lock, which saves Unlock its
// own. GivenBack says that this transaction has succeeded.
func (h *Held) GiveBack() clientv3.Op { return clientv3.OpDelete(h.key) }

// GivenBack leaves nothing for Unlock but to let the next goroutine of this process on.
func (h *Held) GivenBack() { h.given = true }

// Unlock gives the lock back. It has its own short deadline and cannot fail: when etcd
// does not answer, the session is left to run out, and the lock with it.
func (h *Held) Unlock(ctx context.Context) {
	defer h.locks.leave(h.name)
	if h.given {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), unlockTimeout)
	defer cancel()
	if _, err := h.locks.client.Txn(ctx).If(h.IsOwner()).Then(clientv3.OpDelete(h.key)).Commit(); err != nil {
		h.locks.abandon(h.session)
	}
}

// current gives the process's session, a new one when the last has ended.
func (l *locks) current(ctx context.Context) (*concurrency.Session, error) {
	for {
		l.mu.Lock()
		session := l.session
		l.mu.Unlock()
		if session != nil && !ended(session) {
			return session, nil
		}
		lease, err := l.client.Grant(ctx, int64(l.ttl))
		if err != nil {
			return nil, err
		}
		fresh, err := concurrency.NewSession(l.client, concurrency.WithLease(lease.ID), concurrency.WithTTL(l.ttl))
		if err != nil {
			return nil, err
		}
		l.mu.Lock()
		first := l.session == session
		if first {
			l.session = fresh
		}
		l.mu.Unlock()
		if first {
			return fresh, nil
		}
		fresh.Orphan() // another goroutine was faster: its session serves both
	}
}

func ended(session *concurrency.Session) bool {
	select {
	case <-session.Done():
		return true
	default:
		return false
	}
}

// abandon stops keeping a session alive: its locks are free when the lease runs out.
// Others who hold a lock by it fail their transactions and take it again.
func (l *locks) abandon(session *concurrency.Session) {
	l.mu.Lock()
	if l.session == session {
		l.session = nil
	}
	l.mu.Unlock()
	session.Orphan()
}

func (l *locks) enter(ctx context.Context, name string) error {
	l.mu.Lock()
	g := l.gates[name]
	if g == nil {
		g = &gate{turn: make(chan struct{}, 1)}
		l.gates[name] = g
	}
	g.users++
	l.mu.Unlock()
	select {
	case g.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		l.forget(name)
		return ctx.Err()
	}
}

func (l *locks) leave(name string) {
	l.mu.Lock()
	g := l.gates[name]
	l.mu.Unlock()
	<-g.turn
	l.forget(name)
}

func (l *locks) forget(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if g := l.gates[name]; g != nil {
		if g.users--; g.users == 0 {
			delete(l.gates, name)
		}
	}
}

// close gives the session's locks back at once.
func (l *locks) close() {
	l.mu.Lock()
	session := l.session
	l.session = nil
	l.mu.Unlock()
	if session == nil {
		return
	}
	session.Orphan()
	ctx, cancel := context.WithTimeout(context.Background(), unlockTimeout)
	defer cancel()
	_, _ = l.client.Revoke(ctx, session.Lease())
}
