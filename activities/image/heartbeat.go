package image

import (
	"context"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"

	"burrow.dev/burrow/internal/imagestore"
)

// reportEvery is how old the progress of a stage may be. The worker itself beats in between.
const reportEvery = 500 * time.Millisecond

// heartbeats tells Temporal what is reported. Outside an activity nobody is told.
func heartbeats(ctx context.Context) imagestore.Report {
	if !activity.IsActivity(ctx) {
		return func(string, int64, int64) {}
	}
	return paced(time.Now, func(p Progress) { activity.RecordHeartbeat(ctx, p) })
}

// paced hands on each new stage, and within one no more than a report each reportEvery: a
// download reports with every piece it reads.
func paced(now func() time.Time, send func(Progress)) imagestore.Report {
	var mu sync.Mutex
	var stage string
	var sent time.Time
	return func(is string, done, total int64) {
		mu.Lock()
		defer mu.Unlock()
		at := now()
		if is == stage && at.Sub(sent) < reportEvery {
			return
		}
		stage, sent = is, at
		send(Progress{Stage: is, Done: done, Total: total})
	}
}
