package workflows

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
)

// node is a part of a workflow's body: a step, or steps in some order.
type node interface {
	names() []string
	run(ctx workflow.Context, op *operation) error
}

// step is one step as users see it.
type step struct {
	name string
	do   func(ctx workflow.Context) error
}

func (s step) names() []string { return []string{s.name} }

// run runs the step until it is done, refused, or given up by whoever must decide.
func (s step) run(ctx workflow.Context, op *operation) error {
	ctx = workflow.WithValue(ctx, stepKey{}, s.name)
	for {
		op.progress.begin(ctx, s.name)
		err := s.do(ctx)
		if op.step(s.name).State == StepSkipped {
			return err
		}
		op.progress.end(ctx, s.name, err)
		if err == nil || stopped(err) || classOf(err) != errs.Operator {
			return err
		}
		again, err := op.decide(ctx, s.name, err)
		if !again {
			return err
		}
	}
}

// optional is a step that some runs have no need of. Passed over, it leaves nothing in the
// history: one can be added to an operation of which runs are under way.
type optional struct {
	step
	needed func() bool
}

func (o optional) run(ctx workflow.Context, op *operation) error {
	if !o.needed() {
		op.skip(ctx, o.name, "not needed")
		return nil
	}
	return o.step.run(ctx, op)
}

// sequence runs its parts one after another.
type sequence []node

func (q sequence) names() []string { return namesOf(q) }

func (q sequence) run(ctx workflow.Context, op *operation) error {
	for _, part := range q {
		if err := part.run(ctx, op); err != nil {
			return err
		}
	}
	return nil
}

// chosen is a part that is known only when it is reached.
type chosen func() node

func (c chosen) names() []string { return nil }

func (c chosen) run(ctx workflow.Context, op *operation) error { return c().run(ctx, op) }

// together runs its parts side by side. The first failure cancels the others; all have
// ended when it returns.
type together []node

func (t together) names() []string { return namesOf(t) }

func (t together) run(ctx workflow.Context, op *operation) error {
	ctx, cancel := workflow.WithCancel(ctx)
	defer cancel()
	var first error
	group := workflow.NewWaitGroup(ctx)
	for _, part := range t {
		group.Add(1)
		workflow.Go(ctx, func(ctx workflow.Context) {
			defer group.Done()
			if err := part.run(ctx, op); err != nil && (first == nil || stopped(first)) {
				first = err
				cancel()
			}
		})
	}
	free, release := workflow.NewDisconnectedContext(ctx)
	defer release()
	group.Wait(free)
	return first
}

// sideBySide does something n times, at most width at a time. All have ended when it
// returns, also when ctx was cancelled; its error is the first to come.
func sideBySide(ctx workflow.Context, n, width int, do func(ctx workflow.Context, i int) error) error {
	slots := workflow.NewSemaphore(ctx, int64(width))
	group := workflow.NewWaitGroup(ctx)
	var first error
	for i := range n {
		group.Add(1)
		workflow.Go(ctx, func(ctx workflow.Context) {
			defer group.Done()
			err := slots.Acquire(ctx, 1)
			if err == nil {
				err = do(ctx, i)
				slots.Release(1)
			}
			if first == nil {
				first = err
			}
		})
	}
	free, release := workflow.NewDisconnectedContext(ctx)
	defer release()
	group.Wait(free)
	return first
}

// headStart starts its steps and waits for them a limited time; then the rest goes on
// beside them. A failure, early or late, stops the whole operation. What needs a result
// asks for it by operation.await.
type headStart struct {
	wait  time.Duration
	steps []step
}

func (h headStart) names() []string {
	var names []string
	for _, s := range h.steps {
		names = append(names, s.name)
	}
	return names
}

func (h headStart) run(ctx workflow.Context, op *operation) error {
	running := len(h.steps)
	for _, s := range h.steps {
		done, settle := workflow.NewFuture(ctx)
		op.begun[s.name] = done
		workflow.Go(ctx, func(ctx workflow.Context) {
			err := s.run(ctx, op)
			running--
			settle.Set(nil, err)
			if err != nil && !stopped(err) {
				op.stop(err)
			}
		})
	}
	_, err := workflow.AwaitWithTimeout(ctx, h.wait, func() bool { return running == 0 })
	return err
}

// await waits for a step that headStart began.
func (op *operation) await(ctx workflow.Context, name string) error {
	begun, ok := op.begun[name]
	if !ok {
		return nil
	}
	return workflow.Await(ctx, begun.IsReady)
}

func namesOf(parts []node) []string {
	var names []string
	for _, part := range parts {
		names = append(names, part.names()...)
	}
	return names
}

// decide applies onFailure to an operator error: again reports whether the step runs once
// more; otherwise the step ends with the error returned (nil: the operation goes on).
func (op *operation) decide(ctx workflow.Context, name string, cause error) (again bool, err error) {
	policy := manifest.OnFailureRollback
	if op.onFailure != nil {
		policy = op.onFailure(name)
	}
	switch policy {
	case manifest.OnFailureIgnore:
		op.skip(ctx, name, "failed, and onFailure says ignore: "+reason(cause))
		return false, nil
	case manifest.OnFailureHold:
		return op.hold(ctx, name, cause)
	default:
		return false, cause
	}
}
