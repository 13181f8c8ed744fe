package ansible

import (
	"context"
	"sync"
	"time"
)

// heartbeat reports until the function it returns is called, and then once more: how far the
// run came is known however short it was.
func (a *Activities) heartbeat(ctx context.Context, now func() Progress) (stop func()) {
	beating, cancel := context.WithCancel(ctx)
	var done sync.WaitGroup
	done.Go(func() {
		ticker := time.NewTicker(heartbeatEvery)
		defer ticker.Stop()
		for {
			a.beat(beating, now())
			select {
			case <-beating.Done():
				return
			case <-ticker.C:
			}
		}
	})
	return func() {
		cancel()
		done.Wait()
		a.beat(ctx, now())
	}
}
