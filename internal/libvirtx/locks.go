package libvirtx

import (
	"context"
	"sync"
)

// keyedLocks is one mutex for each key in use, given up when the waiter's context ends.
type keyedLocks struct {
	mu   sync.Mutex
	held map[string]*keyedLock
}

type keyedLock struct {
	slot  chan struct{} // full: locked
	users int           // holder and waiters; the entry goes with the last
}

func newKeyedLocks() *keyedLocks { return &keyedLocks{held: map[string]*keyedLock{}} }

// lock waits for key and gives its release, to be called once. An empty key is free.
func (k *keyedLocks) lock(ctx context.Context, key string) (release func(), err error) {
	if key == "" {
		return func() {}, nil
	}
	k.mu.Lock()
	l := k.held[key]
	if l == nil {
		l = &keyedLock{slot: make(chan struct{}, 1)}
		k.held[key] = l
	}
	l.users++
	k.mu.Unlock()

	select {
	case l.slot <- struct{}{}:
		return func() { <-l.slot; k.leave(key, l) }, nil
	case <-ctx.Done():
		k.leave(key, l)
		return nil, ctx.Err()
	}
}

func (k *keyedLocks) leave(key string, l *keyedLock) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if l.users--; l.users == 0 {
		delete(k.held, key)
	}
}
