package image

import (
	"context"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"

	"burrow.dev/burrow/internal/imagestore"
)

// heartbeatEvery is how soon a cancellation arrives and how fresh progress is.
const heartbeatEvery = 500 * time.Millisecond

// heartbeat tells Temporal, until stop, the last that was reported. Outside an activity
// nobody is told.
func heartbeat(ctx context.Context) (report imagestore.Report, stop func()) {
	var mu sync.Mutex
	var last Progress
	report = func(stage string, done, total int64) {
		mu.Lock()
		defer mu.Unlock()
		last = Progress{Stage: stage, Done: done, Total: total}
	}
	if !activity.IsActivity(ctx) {
		return report, func() {}
	}
	quit, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(heartbeatEvery)
		defer tick.Stop()
		for {
			mu.Lock()
			p := last
			mu.Unlock()
			activity.RecordHeartbeat(ctx, p)
			select {
			case <-quit:
				return
			case <-tick.C:
			}
		}
	}()
	return report, func() { close(quit); <-ended }
}
