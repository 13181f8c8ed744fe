// Package keylock has locks by name, within one process.
package keylock

import (
	"context"
	"sync"
)

// Locks is one mutex for each key in use, made at the first use and gone after the last.
// The zero value is ready. An empty key is free.
type Locks struct {
	mu   sync.Mutex
	held map[string]*lock
}

type lock struct {
	slot  chan struct{} // full: locked
	users int           // holder and waiters; the entry goes with the last
}

// Lock waits for key and gives its release, to be called once; a waiter gives up when ctx
// ends.
func (k *Locks) Lock(ctx context.Context, key string) (release func(), err error) {
	if key == "" {
		return func() {}, nil
	}
	k.mu.Lock()
	if k.held == nil {
		k.held = map[string]*lock{}
	}
	l := k.held[key]
	if l == nil {
		l = &lock{slot: make(chan struct{}, 1)}
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

func (k *Locks) leave(key string, l *lock) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if l.users--; l.users == 0 {
		delete(k.held, key)
	}
}
