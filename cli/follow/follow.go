package follow

import (
	"context"
	"slices"
	"sync"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"burrow.dev/burrow/cli/render"
	"burrow.dev/burrow/workflows"
)

// lookEvery is how often pending activities are read: Temporal pushes the history, but
// not attempts and heartbeats.
const lookEvery = 500 * time.Millisecond

// Target is a workflow to follow. RunID empty: its latest run.
type Target struct {
	ID    string
	RunID string
}

// Outcome is how a followed workflow ended.
type Outcome struct {
	Target
	Kind   string // workflow type
	Status enumspb.WorkflowExecutionStatus
	// Held: it still runs, and waits for a person.
	Held bool
	// Message is the failure's or the hold's own text.
	Message string
	// Class is the failure's class ("Permanent", "Operator"), "" when there is none.
	Class string
	// Result is the JSON of what the workflow returned.
	Result []byte
}

// Run follows workflows and all they start until each has ended or waits for a person.
// update gets the whole view after every change. When ctx ends it returns ctx's error;
// the workflows go on. A Temporal that is out of reach is tried again for Patience.
func Run(ctx context.Context, c client.Client, targets []Target, update func([]render.Operation)) ([]Outcome, error) {
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	f := &follower{ctx: inner, settledDown: cancel, client: c, update: update, views: map[Target]*reducer{}}
	for _, t := range targets {
		f.add(t)
	}
	looking := make(chan struct{})
	go func() { defer close(looking); f.look() }()
	f.open.Wait()
	cancel()
	<-looking
	f.show()
	if err := ctx.Err(); err != nil {
		return f.outcomes(), err
	}
	return f.outcomes(), f.err
}

// follower holds the views of everything that is followed.
type follower struct {
	ctx         context.Context
	settledDown context.CancelFunc
	client      client.Client
	update      func([]render.Operation)
	open        sync.WaitGroup

	mu    sync.Mutex
	order []Target
	views map[Target]*reducer
	err   error
}

// add starts to follow a workflow, once.
func (f *follower) add(t Target) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, known := f.views[t]; known {
		return
	}
	f.views[t] = newReducer(t.ID)
	f.order = append(f.order, t)
	f.open.Go(func() { f.history(t) })
}

// shown reports whether a workflow is a view of its own: one that only starts others is not.
func (r *reducer) shown() bool {
	return r.kind != workflows.NameApplyDocuments || r.closed && len(r.kids) == 0
}

func (f *follower) fail(err error) {
	if f.ctx.Err() != nil {
		return // we were told to stop, or everything has settled
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err == nil {
		f.err = err
	}
}

// look reads pending activities of the open workflows, shows the views, and ends the
// following when all that is left waits for a person.
func (f *follower) look() {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-f.ctx.Done():
			return
		case <-tick.C:
			f.pending()
			f.show()
			if f.settled() {
				f.settledDown()
				return
			}
		}
	}
}

func (f *follower) pending() {
	for _, t := range f.openTargets() {
		d, err := f.client.DescribeWorkflow(f.ctx, t.ID, t.RunID)
		if err != nil {
			continue // the history's own long poll reports a server that is gone
		}
		f.mu.Lock()
		r := f.views[t]
		waiting := r.overlay(d.RawResponse, time.Now())
		f.mu.Unlock()
		message := ""
		if waiting != "" {
			message = f.silent(waiting)
		}
		f.say(t, message)
	}
}

// silent says that nobody polls a queue, when that is so.
func (f *follower) silent(queue string) string {
	d, err := f.client.DescribeTaskQueue(f.ctx, queue, enumspb.TASK_QUEUE_TYPE_ACTIVITY)
	if err != nil || len(d.GetPollers()) > 0 {
		return ""
	}
	return "no worker polls " + queue + "; `burrow status` shows what runs there"
}

func (f *follower) openTargets() []Target {
	f.mu.Lock()
	defer f.mu.Unlock()
	var open []Target
	for _, t := range f.order {
		if !f.views[t].closed {
			open = append(open, t)
		}
	}
	return open
}

// settled reports whether every workflow has ended or waits for a person, or waits for
// one that does.
func (f *follower) settled() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range f.views {
		if !r.closed && !r.held && !f.waitsForHeld(r) {
			return false
		}
	}
	return true
}

func (f *follower) waitsForHeld(r *reducer) bool {
	held := false
	for _, kid := range r.kids {
		k := f.views[kid]
		if k == nil || !k.closed && !k.held {
			return false
		}
		held = held || k.held
	}
	return held
}

// show hands the views to the renderer.
func (f *follower) show() {
	f.mu.Lock()
	var ops []render.Operation
	for _, t := range f.order {
		if r := f.views[t]; r.shown() && r.kind != "" {
			op := r.op
			op.Steps = slices.Clone(op.Steps)
			ops = append(ops, op)
		}
	}
	f.mu.Unlock()
	f.update(ops)
}

// outcomes says how everything ended, in the order it was met.
func (f *follower) outcomes() []Outcome {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []Outcome
	for _, t := range f.order {
		r := f.views[t]
		all = append(all, Outcome{
			Target: t, Kind: r.kind, Status: r.status, Held: r.held && !r.closed, Message: r.op.Message,
			Class: r.failure.GetApplicationFailureInfo().GetType(), Result: r.result,
		})
	}
	return all
}
