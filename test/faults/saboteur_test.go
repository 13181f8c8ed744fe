package faults

import (
	"cmp"
	"context"
	"errors"
	"os"
	"syscall"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/workflow"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/activities/domain"
	"burrow.dev/burrow/internal/errs"
)

// hastyGrace is how long a guest is asked to power off, in seconds: one without an
// operating system never hears it.
const hastyGrace = 1

// hastyHeartbeat is how soon a dead worker is noticed: the product's own ten seconds, a
// hundred times, would be most of the matrix. TestAStepStartsAgain… takes the product's.
const hastyHeartbeat = 3 * time.Second

// hungTimeout is how long one that is ordered to hang may take: the real limit may be minutes.
const hungTimeout = 6 * time.Second

// hungLonger are those that take longer by themselves: a guest that does not answer is
// waited for, and Ansible is slow to start.
var hungLonger = map[string]time.Duration{
	activities.DomainUnplugNICs: 30 * time.Second, activities.AnsibleCheck: time.Minute, activities.AnsibleRun: time.Minute,
}

// waitPoll is how often a waiting activity looks for its release.
const waitPoll = 20 * time.Millisecond

// saboteur is the interceptor that obeys orders.
type saboteur struct {
	interceptor.WorkerInterceptorBase
	orders orders
}

func (s *saboteur) InterceptActivity(_ context.Context, next interceptor.ActivityInboundInterceptor) interceptor.ActivityInboundInterceptor {
	in := &sabotagedActivity{orders: s.orders}
	in.Next = next
	return in
}

func (s *saboteur) InterceptWorkflow(_ workflow.Context, next interceptor.WorkflowInboundInterceptor) interceptor.WorkflowInboundInterceptor {
	in := &sabotagedWorkflow{orders: s.orders}
	in.Next = next
	return in
}

// sabotagedWorkflow shortens the time of activities that are to hang. Times are no part of
// what a replay compares.
type sabotagedWorkflow struct {
	interceptor.WorkflowInboundInterceptorBase
	orders orders
}

func (w *sabotagedWorkflow) Init(out interceptor.WorkflowOutboundInterceptor) error {
	hasty := &hastyOutbound{orders: w.orders}
	hasty.Next = out
	return w.Next.Init(hasty)
}

type hastyOutbound struct {
	interceptor.WorkflowOutboundInterceptorBase
	orders orders
}

func (h *hastyOutbound) ExecuteActivity(ctx workflow.Context, name string, args ...any) workflow.Future {
	id := workflow.GetInfo(ctx).WorkflowExecution.ID
	options := workflow.GetActivityOptions(ctx)
	if !h.orders.timesKept() {
		options.HeartbeatTimeout = hastyHeartbeat
	}
	if what, _, ok, err := h.orders.take(id, name); err == nil && ok && what.Deed == hang {
		options.StartToCloseTimeout = cmp.Or(hungLonger[name], hungTimeout)
	}
	for i, arg := range args {
		if in, ok := arg.(domain.ShutdownIn); ok {
			in.GraceSeconds = min(in.GraceSeconds, hastyGrace)
			args[i] = in
		}
	}
	ctx = workflow.WithActivityOptions(ctx, options)
	return h.Next.ExecuteActivity(ctx, name, args...)
}

type sabotagedActivity struct {
	interceptor.ActivityInboundInterceptorBase
	orders orders
}

func (a *sabotagedActivity) ExecuteActivity(ctx context.Context, in *interceptor.ExecuteActivityInput) (any, error) {
	info := activity.GetInfo(ctx)
	id, name := info.WorkflowExecution.ID, info.ActivityType.Name
	what, n, ok, err := a.orders.take(id, name)
	if what.Times > 0 {
		_ = a.orders.started(id, name) // for measuring only
	}
	if err != nil || !ok {
		return errOr(err, func() (any, error) { return a.Next.ExecuteActivity(ctx, in) })
	}
	note := func() { _ = a.orders.note(id, name) } // one that is not counted is done again, and the cell fails
	switch what.Deed {
	case killBefore:
		note()
		die()
	case killMiddle:
		note()
		go func() {
			<-time.After(what.After)
			die()
		}()
		if _, err := a.Next.ExecuteActivity(ctx, in); err == nil {
			die()
		}
		select {} // its end must not be reported
	case killAfter:
		_, err := a.Next.ExecuteActivity(ctx, in)
		if err != nil {
			return nil, err
		}
		note()
		die()
	case failBefore, failAfter:
		if what.Deed == failAfter || what.Class == string(errs.Transient) && n%2 == 1 {
			if _, err := a.Next.ExecuteActivity(ctx, in); err != nil {
				return nil, err
			}
		}
		note()
		return nil, errs.New(errs.Class(what.Class), id, name, errors.New("ordered by the fault harness"), "nothing: it is a test")
	case hang:
		result, err := a.Next.ExecuteActivity(ctx, in)
		if err != nil {
			return nil, err
		}
		note()
		<-ctx.Done()
		return result, err
	case freeze:
		result, err := a.Next.ExecuteActivity(ctx, in)
		if err != nil {
			return nil, err
		}
		note()
		_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
		return result, err
	case waitBefore:
		note()
		if err := a.await(ctx, id, name); err != nil {
			return nil, err
		}
	case waitAfter:
		result, err := a.Next.ExecuteActivity(ctx, in)
		if err != nil {
			return nil, err
		}
		note()
		_ = a.await(ctx, id, name) // cancelled or released: it has happened
		return result, nil
	case notice:
		note()
	}
	return a.Next.ExecuteActivity(ctx, in)
}

// await returns when the harness releases the activity (nil) or it is cancelled.
func (a *sabotagedActivity) await(ctx context.Context, id, name string) error {
	tick := time.NewTicker(waitPoll)
	defer tick.Stop()
	for !a.orders.released(id, name) {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
	return nil
}

func errOr(err error, next func() (any, error)) (any, error) {
	if err != nil {
		return nil, err
	}
	return next()
}

// die ends the process as a crash would: nothing is flushed, reported or given back.
func die() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}
