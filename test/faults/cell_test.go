package faults

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"syscall"
	"time"

	"burrow.dev/burrow/activities"
)

const contSignal = syscall.SIGCONT

// killWithin: a step takes a few hundred milliseconds at most, and a playbook seconds.
func killWithin(activity string) time.Duration {
	if activity == activities.AnsibleRun {
		return 6 * time.Second
	}
	return 300 * time.Millisecond
}

// always is more often than anything is tried.
const always = math.MaxInt

func (c cell) prepare(ctx context.Context, s *subject) error {
	s.onFailure, s.keys = c.fault.onFailure, c.fault.keys
	if c.op.prepare == nil {
		return nil
	}
	if err := c.op.prepare(ctx, s); err != nil {
		return fmt.Errorf("prepare: %w", err)
	}
	return nil
}

// run strikes the operation, and checks how it ended.
func (c cell) run(ctx context.Context, s *subject) error {
	end, err := c.strike(ctx, s)
	if err != nil {
		return err
	}
	return c.agrees(end)
}

// strike starts the operation with its fault ordered, and waits for the end.
func (c cell) strike(ctx context.Context, s *subject) (end, err error) {
	what := c.fault.order
	if what.Deed == killMiddle {
		what.After = time.Duration(rank(s.seed, c) % uint64(killWithin(c.at.activity)))
	}
	if c.at.after != "" {
		what.Once = c.at.after
		if err := s.orders.give(s.ref(), c.at.after, order{Deed: notice, Times: 1}); err != nil {
			return nil, err
		}
	}
	if c.broken {
		what.Once = c.op.breaks.activity
		if err := s.orders.give(s.ref(), c.op.breaks.activity, c.op.breaks.order); err != nil {
			return nil, err
		}
	}
	if err := s.orders.give(s.ref(), c.at.activity, what); err != nil {
		return nil, err
	}
	run, err := c.op.start(ctx, s)
	if err != nil {
		return nil, err
	}
	if c.fault.act != nil {
		if err := c.fault.act(ctx, s, c.at, run); err != nil {
			return nil, fmt.Errorf("%w\n%s", err, s.pending(run))
		}
	}
	end, err = s.finish(ctx, run)
	if err != nil {
		return nil, err
	}
	if done := s.orders.done(s.ref(), c.at.activity); done != c.fault.order.Times {
		return nil, fmt.Errorf("the fault happened %d times, not %d; the operation ended: %v", done, c.fault.order.Times, end)
	}
	return end, nil
}

// agrees checks how the workflow itself ended.
func (c cell) agrees(end error) error {
	switch {
	case c.end == endsWell && end != nil:
		return fmt.Errorf("it should have ended well: %w", end)
	case c.end != endsWell && end == nil:
		return errors.New("it ended well, and should not have")
	case end != nil && strings.TrimSpace(end.Error()) == "":
		return errors.New("it ended without a reason")
	}
	return nil
}

func writeFile(path, text string) error { return os.WriteFile(path, []byte(text), 0o600) }
