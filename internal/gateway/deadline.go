package gateway

import (
	"sync"
	"time"
)

// deadline is a moment that can be moved while somebody waits for it.
type deadline struct {
	mu       sync.Mutex
	timer    *time.Timer
	settings int // how often it was set: a timer that fired late knows that it is old
	done     chan struct{}
}

func newDeadline() *deadline { return &deadline{done: make(chan struct{})} }

// passed gives the channel that is closed at the deadline.
func (d *deadline) passed() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.done
}

// set moves the deadline; the zero time is never. One that has passed already wakes
// whoever waits.
func (d *deadline) set(at time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
	d.settings++
	select {
	case <-d.done:
		d.done = make(chan struct{})
	default:
	}
	wait := time.Until(at)
	switch mine := d.settings; {
	case at.IsZero():
	case wait <= 0:
		close(d.done)
	default:
		d.timer = time.AfterFunc(wait, func() { d.fire(mine) })
	}
}

func (d *deadline) fire(setting int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.settings == setting {
		close(d.done)
	}
}
