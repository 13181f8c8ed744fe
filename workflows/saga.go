package workflows

import (
	"errors"
	"fmt"
	"slices"

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
	var failed []error
	for i := len(s.undos) - 1; i >= 0; i-- {
		u := s.undos[i]
		err := u.run(ctx)
		for err != nil && classOf(err) == errs.Operator && workflow.Sleep(ctx, retryMost) == nil {
			err = u.run(ctx)
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("undo %s: %w", u.step, err))
		}
	}
	s.undos = nil
	return errors.Join(failed...)
}
