package follow

import (
	"errors"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
)

// Patience is how long Temporal may be out of reach. It is back from a restart in seconds;
// a machine that was suspended has its clock stand still meanwhile.
const Patience = 15 * time.Minute

// againEvery: Temporal's client has tried for a while itself before it gives up.
const againEvery = time.Second

// history feeds a workflow's events into its view until it has ended or is held, over every
// time that Temporal cannot be reached.
func (f *follower) history(t Target) {
	run, last, contact := t.RunID, int64(0), time.Now()
	for {
		before := last
		err := f.events(t, &run, &last)
		if last > before {
			contact = time.Now()
		}
		switch {
		case err == nil, f.ctx.Err() != nil:
			return
		case !passes(err):
			f.fail(err)
			return
		case time.Since(contact) > Patience:
			f.fail(fmt.Errorf("no answer from Temporal for %s: %w", Patience, err))
			return
		}
		f.say(t, "Temporal does not answer; trying again. The operation goes on without us")
		select {
		case <-f.ctx.Done():
		case <-time.After(againEvery):
		}
	}
}

// events reads a workflow's history to its end, leaving out what was read before: up to the
// event last, of the run that was followed from the start.
func (f *follower) events(t Target, run *string, last *int64) error {
	events := f.client.GetWorkflowHistory(f.ctx, t.ID, *run, true, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		e, err := events.Next()
		if err != nil {
			return err
		}
		if e.GetEventId() <= *last {
			continue
		}
		*last = e.GetEventId()
		if began := e.GetWorkflowExecutionStartedEventAttributes(); began != nil {
			*run = began.GetOriginalExecutionRunId()
		}
		f.mu.Lock()
		r := f.views[t]
		r.apply(e)
		children := r.children
		r.children = nil
		f.mu.Unlock()
		for _, child := range children {
			f.add(child)
		}
	}
	return nil
}

// passes reports whether an error may be over the next time.
func passes(err error) bool {
	var (
		missing   *serviceerror.NotFound
		namespace *serviceerror.NamespaceNotFound
		invalid   *serviceerror.InvalidArgument
		denied    *serviceerror.PermissionDenied
		unknown   *serviceerror.Unimplemented
	)
	return !errors.As(err, &missing) && !errors.As(err, &namespace) && !errors.As(err, &invalid) && !errors.As(err, &denied) && !errors.As(err, &unknown)
}

// say shows a message about an operation that is followed.
func (f *follower) say(t Target, message string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r := f.views[t]; !r.held && !r.closed {
		r.op.Message = message
	}
}
