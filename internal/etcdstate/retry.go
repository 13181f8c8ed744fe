package etcdstate

import (
	"context"
	"math/rand/v2"
	"time"

	"burrow.dev/burrow/internal/errs"
)

const (
	// conflictAttempts bounds how often a change is applied again: more writers than this
	// at one key at one time is a fault, and the activity's own retry goes on.
	conflictAttempts = 30
	// The pauses between attempts: the first is about one transaction long, the last long
	// enough for dozens of other writers to be served.
	conflictPauseMin = 2 * time.Millisecond
	conflictPauseMax = 200 * time.Millisecond
)

// RetryConflict runs attempt until it reports done or fails, with a growing random pause
// between; attempt's error is returned as it is. After too many conflicts it gives
// errs.ErrConflict, which is transient.
func RetryConflict(ctx context.Context, object, action string, attempt func() (done bool, err error)) error {
	pause := conflictPauseMin
	for range conflictAttempts {
		done, err := attempt()
		if err != nil {
			return err
		}
		if done {
			return nil
		}
		if err := wait(ctx, rand.N(pause)+conflictPauseMin/2); err != nil {
			return Translate(ctx, object, action, err)
		}
		pause = min(2*pause, conflictPauseMax)
	}
	return errs.New(errs.Transient, object, action, errs.ErrConflict, conflictNext)
}

// wait returns after d, or with the context's error.
func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
