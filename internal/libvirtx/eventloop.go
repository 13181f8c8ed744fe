package libvirtx

import (
	"log/slog"
	"sync"
	"time"

	"libvirt.org/go/libvirt"
)

// loopRetry is how long the event loop rests after a failed round, so that a
// lasting failure does not become a busy loop.
const loopRetry = 200 * time.Millisecond

// startEventLoop registers libvirt's event loop and runs it for ever. libvirt has one
// event loop for each process, and it must be registered before the first connection is
// opened: the once is the process-wide state of libvirt's own API, not ours.
var startEventLoop = sync.OnceValue(func() error {
	if err := libvirt.EventRegisterDefaultImpl(); err != nil {
		return err
	}
	go runEventLoop()
	return nil
})

// runEventLoop never returns: keepalive answers, events and streams of every
// connection of the process depend on it.
func runEventLoop() {
	for {
		if err := libvirt.EventRunDefaultImpl(); err != nil {
			slog.Error("libvirt event loop", "err", err)
			<-time.After(loopRetry)
		}
	}
}
