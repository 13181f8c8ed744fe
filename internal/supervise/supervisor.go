package supervise

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"burrow.dev/burrow/internal/errs"
)

const (
	// readyProbe is how often a starting part is asked.
	readyProbe = 25 * time.Millisecond
	// readyLimit bounds the first start of a part; a slow disk is far from it.
	readyLimit = time.Minute
	// backoffFirst and backoffMost bound the wait before a dead part is started again.
	backoffFirst = 500 * time.Millisecond
	backoffMost  = 30 * time.Second
	// settled is how long a part must have run for its next death to count as the first.
	settled = time.Minute
)

// Supervisor keeps parts running. The zero value of the optional fields is usable.
type Supervisor struct {
	// Dir is the data directory; run/ and log/ in it are the supervisor's.
	Dir string
	// Name of the command that takes the data directory; "" means `burrow up`. Down ends no other.
	Name string
	// Parts in the order of their start; each starts when the one before is ready.
	Parts []Part
	// Log gets what happens later on; nil means slog.Default.
	Log *slog.Logger
	// Progress gets what happens until all is ready; nil means nobody.
	Progress func(Event)

	lock   *lock
	ledger *ledger
}

// Acquire takes the data directory, or refuses with errs.ErrBusy and the name of who
// has it. What must not happen beside another instance (writing configuration) comes
// after it. Close gives it back.
func (s *Supervisor) Acquire() error {
	for _, folder := range []string{runFolder(s.Dir), s.logFolder()} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return errs.NewOperator("data directory "+s.Dir, "make folder "+filepath.Base(folder), err, "run as root")
		}
	}
	held, err := acquire(s.Dir, s.Name)
	if err != nil {
		return err
	}
	s.lock = held
	return nil
}

// Close gives the data directory back.
func (s *Supervisor) Close() error {
	if s.lock == nil {
		return nil
	}
	held := s.lock
	s.lock = nil
	return held.release()
}

// Run starts or adopts every part, calls ready when all answer, and keeps them running
// until ctx ends; then it stops them in reverse order. A part that dies or does not
// answer before everything was ready once ends Run with an error that shows the end
// of its log. Acquire comes first.
func (s *Supervisor) Run(ctx context.Context, ready func()) error {
	if s.lock == nil {
		return errors.New("supervisor: run before acquire")
	}
	survivors, err := States(s.Dir)
	if err != nil {
		s.log().Warn("records of an earlier run are not readable; what it left cannot be adopted", "error", err)
	}
	s.ledger = &ledger{dir: s.Dir, states: survivors}
	keepers, err := s.startAll(ctx, survivors)
	if err == nil {
		ready()
		err = s.keepAll(ctx, keepers)
	}
	return errors.Join(err, s.stopAll(keepers), s.ledger.clear())
}

// keeper is one part and the process that it is at the moment, nil before the first.
type keeper struct {
	Part
	process *process
}

// startAll starts part after part. What it gives must be stopped also when it fails.
func (s *Supervisor) startAll(ctx context.Context, survivors []State) ([]*keeper, error) {
	kept := map[string]*process{}
	for i := len(survivors) - 1; i >= 0; i-- { // what depends is ended before what it depends on
		if p := s.takeOver(survivors[i]); p != nil {
			kept[survivors[i].Name] = p
		}
	}
	var all []*keeper // adopted ones are stopped also when an earlier part fails
	for _, part := range s.Parts {
		all = append(all, &keeper{Part: part, process: kept[part.Name]})
	}
	for _, k := range all {
		if err := s.bringUp(ctx, k); err != nil {
			return all, err
		}
	}
	return all, nil
}

// bringUp starts the part unless it was adopted and waits until it answers.
func (s *Supervisor) bringUp(ctx context.Context, k *keeper) error {
	began := time.Now()
	if k.process == nil {
		s.tell(k.Name, "starting")
		if err := s.start(k); err != nil {
			return errs.NewOperator(k.Name, "start", err, "look at "+s.logOf(k.Name))
		}
	}
	if err := s.awaitReady(ctx, k, readyLimit); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return errs.NewOperator(k.Name, "start", fmt.Errorf("%w\n%s", err, s.lastLines(k.Name)), "look at "+s.logOf(k.Name))
	}
	s.tell(k.Name, fmt.Sprintf("ready after %.1f s (pid %d)", time.Since(began).Seconds(), k.process.id.PID))
	return nil
}

// start spawns the part's process and records it.
func (s *Supervisor) start(k *keeper) error {
	p, err := spawn(k.Command, s.logOf(k.Name), func(id Identity) error {
		return s.ledger.update(k.Name, func(state *State) {
			state.Identity, state.Since, state.Ready = id, time.Now(), false
			state.Version, state.Path, state.Log = k.Version, k.Command.Path, s.logOf(k.Name)
		})
	})
	if err != nil {
		return err
	}
	k.process = p
	return nil
}

// awaitReady asks until the part answers, its process ends, or the limit is over.
func (s *Supervisor) awaitReady(ctx context.Context, k *keeper, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	ticker := time.NewTicker(readyProbe)
	defer ticker.Stop()
	for {
		err := k.Ready(ctx, k.process.id.PID)
		if err == nil {
			return s.ledger.update(k.Name, func(state *State) { state.Ready = true })
		}
		select {
		case <-k.process.exited:
			return fmt.Errorf("pid %d: %s", k.process.id.PID, k.process.outcome)
		case <-ctx.Done():
			return fmt.Errorf("pid %d does not answer: %w", k.process.id.PID, err)
		case <-ticker.C:
		}
	}
}

// keepAll watches every part until ctx ends.
func (s *Supervisor) keepAll(ctx context.Context, keepers []*keeper) error {
	var group errgroup.Group
	for _, k := range keepers {
		group.Go(func() error { return s.keep(ctx, k) })
	}
	group.Go(func() error { return s.rotateLogs(ctx) })
	return group.Wait()
}

// keep restarts one part whenever its process ends.
func (s *Supervisor) keep(ctx context.Context, k *keeper) error {
	backoff := backoffFirst
	began := time.Now()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-k.process.exited:
		}
		if time.Since(began) > settled {
			backoff = backoffFirst
		}
		s.log().Error("part ended; starting it again", "part", k.Name, "pid", k.process.id.PID, "outcome", k.process.outcome, "wait", backoff)
		if err := s.ledger.update(k.Name, func(state *State) { state.Ready, state.LastExit = false, k.process.outcome }); err != nil {
			s.log().Error("record the end of a part", "part", k.Name, "error", err)
		}
		if !wait(ctx, backoff) {
			return nil
		}
		backoff = min(2*backoff, backoffMost)
		began = time.Now()
		s.restart(ctx, k)
	}
}

// restart starts a dead part; when it does not answer, its process is left to itself:
// it may be slow, and if it dies keep sees it.
func (s *Supervisor) restart(ctx context.Context, k *keeper) {
	if err := s.start(k); err != nil {
		s.log().Error("start part", "part", k.Name, "error", err)
		return // its process is the dead one: keep comes here again after a longer wait
	}
	err := s.ledger.update(k.Name, func(state *State) { state.Restarts++ })
	if err == nil {
		err = s.awaitReady(ctx, k, readyLimit)
	}
	if err != nil && ctx.Err() == nil {
		s.log().Error("part does not answer", "part", k.Name, "pid", k.process.id.PID, "error", err)
		return
	}
	s.log().Info("part runs again", "part", k.Name, "pid", k.process.id.PID)
}

// wait waits; false when ctx ended first.
func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
