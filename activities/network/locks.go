package network

import (
	"context"
	"sync"
)

// keyedLocks are locks by name, made at the first use and gone after the last.
type keyedLocks struct {
	mu   sync.Mutex
	held map[string]*keyedLock
}

type keyedLock struct {
	free    chan struct{} // holds one token while nobody has the lock
	waiters int
}

// lock waits for the lock of a key, or for ctx.
func (k *keyedLocks) lock(ctx context.Context, key string) (unlock func(), err error) {
	k.mu.Lock()
	if k.held == nil {
		k.held = map[string]*keyedLock{}
	}
	l := k.held[key]
	if l == nil {
		l = &keyedLock{free: make(chan struct{}, 1)}
		l.free <- struct{}{}
		k.held[key] = l
	}
	l.waiters++
	k.mu.Unlock()

	select {
	case <-l.free:
		return func() {
			l.free <- struct{}{}
			k.leave(key, l)
		}, nil
	case <-ctx.Done():
		k.leave(key, l)
		return nil, ctx.Err()
	}
}

func (k *keyedLocks) leave(key string, l *keyedLock) {
	k.mu.Lock()
	defer k.mu.Unlock()
	l.waiters--
	if l.waiters == 0 {
		delete(k.held, key)
	}
}
