package supervise

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"burrow.dev/burrow/internal/errs"
)

// survivorGrace is how long a part of an earlier run may take to end when this run
// does not know the part any more.
const survivorGrace = 30 * time.Second

// takeOver adopts a recorded process that still is the wanted program, or ends it.
// Nil means that none runs.
func (s *Supervisor) takeOver(state State) *process {
	p, err := adopt(state.Identity)
	if err != nil {
		if !errors.Is(err, ErrGone) {
			s.log().Error("look for a part of an earlier run", "part", state.Name, "error", err)
		}
		return nil
	}
	part, reason := s.wanted(state)
	if reason == "" {
		err := s.ledger.update(state.Name, func(kept *State) { kept.Restarts, kept.LastExit = 0, "" })
		if err == nil {
			s.tell(state.Name, fmt.Sprintf("runs already (pid %d, since %s): adopted", state.PID, state.Since.Local().Format(time.DateTime)))
			return p
		}
		reason = err.Error()
	}
	s.tell(state.Name, fmt.Sprintf("runs already (pid %d) but %s: ending it", state.PID, reason))
	if _, err := p.stop(part.StopGrace); err != nil {
		s.log().Error("end a part of an earlier run", "part", state.Name, "pid", state.PID, "error", err)
		return nil
	}
	if err := s.ledger.remove(state.Name); err != nil {
		s.log().Error("forget a part of an earlier run", "part", state.Name, "error", err)
	}
	return nil
}

// wanted gives the part that a recorded process is of; reason is why it must not go on.
func (s *Supervisor) wanted(state State) (part Part, reason string) {
	for _, part := range s.Parts {
		if part.Name != state.Name {
			continue
		}
		if part.Version != state.Version || part.Command.Path != state.Path {
			return part, "its configuration is another one"
		}
		program, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", state.PID))
		if err == nil && strings.HasSuffix(program, " (deleted)") {
			return part, "its program was replaced"
		}
		return part, ""
	}
	return Part{StopGrace: survivorGrace}, "it is not wanted any more"
}

// stopAll ends the parts, last started first.
func (s *Supervisor) stopAll(keepers []*keeper) error {
	var failures []error
	for i := len(keepers) - 1; i >= 0; i-- {
		k := keepers[i]
		if k.process == nil {
			continue
		}
		s.tell(k.Name, "stopping")
		killed, err := k.process.stop(k.StopGrace)
		if killed {
			err = fmt.Errorf("%s: did not end within %s of SIGTERM and was killed; look at %s", k.Name, k.StopGrace, s.logOf(k.Name))
		}
		failures = append(failures, err)
	}
	return errors.Join(failures...)
}

// Down ends whatever runs for a data directory: the supervisor, which ends its parts,
// or, when that is gone, the parts that it left. It returns when all are gone and tells
// what it ended. Nothing running is success; another command that holds the directory is
// left alone, with errs.ErrBusy.
func Down(ctx context.Context, dir string, grace func(part string) time.Duration) (ended []string, err error) {
	holder, held, err := HolderOf(dir)
	if err != nil {
		return nil, err
	}
	if held && !holder.Supervises() && holder.Alive() {
		return nil, holder.busy(dir, "stop")
	}
	if held {
		if err := endHolder(ctx, dir, holder); err != nil {
			return nil, err
		}
		ended = append(ended, fmt.Sprintf("burrow up (pid %d)", holder.PID))
	}
	lock, err := acquire(dir, "burrow down") // nobody starts parts while leftovers are ended
	if err != nil {
		return ended, err
	}
	defer lock.release()
	states, err := States(dir)
	if err != nil {
		return ended, err
	}
	for i := len(states) - 1; i >= 0; i-- {
		p, err := adopt(states[i].Identity)
		if errors.Is(err, ErrGone) {
			continue
		}
		if err != nil {
			return ended, err
		}
		if _, err := p.stop(grace(states[i].Name)); err != nil {
			return ended, err
		}
		ended = append(ended, fmt.Sprintf("%s (pid %d)", states[i].Name, states[i].PID))
	}
	return ended, (&ledger{dir: dir}).clear()
}

// endHolder asks the supervisor to end and waits: it kills its parts itself when they
// take too long, so it is not killed.
func endHolder(ctx context.Context, dir string, holder Holder) error {
	p, err := adopt(holder.Identity)
	if errors.Is(err, ErrGone) {
		return nil
	}
	if err == nil {
		err = p.signal(syscall.SIGTERM)
	}
	if errors.Is(err, ErrGone) {
		return nil
	}
	if err != nil {
		return errs.NewOperator("burrow up", fmt.Sprintf("stop pid %d", holder.PID), err, "run as root: sudo burrow down")
	}
	select {
	case <-p.exited:
		return nil
	case <-ctx.Done():
		return errs.NewOperator("burrow up", fmt.Sprintf("stop pid %d", holder.PID), context.Cause(ctx), "look at "+dir+"/log/up.log")
	}
}
