package workflows

import (
	"slices"
	"strings"

	"go.temporal.io/sdk/workflow"

	"burrow.dev/burrow/internal/errs"
)

// undo is one registered compensation. Undoing nothing is success.
type undo struct {
	step string
	run  func(ctx workflow.Context) error
}

// saga is undo as data: registered before its step runs, run in reverse order.
type saga struct {
	undos []undo
	stuck stuck
}

// stuck is what undos could not do, each with its step.
type stuck []string

func (s *stuck) add(step string, err error) { *s = append(*s, "undo "+step+": "+reason(err)) }

// Error names all of it.
func (s stuck) Error() string { return strings.Join(s, "; ") }

// err is nil when everything was undone.
func (s stuck) err() error {
	if len(s) == 0 {
		return nil
	}
	return s
}

// add registers the undo of a step that is about to run.
func (s *saga) add(step string, run func(ctx workflow.Context) error) {
	s.undos = append(s.undos, undo{step: step, run: run})
}

// once leaves each step its first undo: one that was held and tried again has registered
// it again, and it is the same.
func (s *saga) once() {
	seen := map[string]bool{}
	s.undos = slices.DeleteFunc(s.undos, func(u undo) bool {
		again := seen[u.step]
		seen[u.step] = true
		return again
	})
}

// compensate runs every undo in reverse order on a context that a cancelled workflow
// does not cancel. Each is tried without limit, also while it needs a person (a disk that
// is full, a file that may not be deleted): whoever mends it need tell nobody. One that is
// refused for good (it met something that is not ours) does not stop the others.
func (s *saga) compensate(ctx workflow.Context) error {
	ctx, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	ctx = takeAway(ctx)
	for i := len(s.undos) - 1; i >= 0; i-- {
		u := s.undos[i]
		err := u.run(ctx)
		for wait := retryMost; err != nil && classOf(err) == errs.Operator && workflow.Sleep(ctx, wait) == nil; wait = min(2*wait, mendMost) {
			err = u.run(ctx)
		}
		if err != nil {
			s.stuck.add(u.step, err)
		}
	}
	s.undos = nil
	return s.stuck.err()
}
