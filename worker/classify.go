package worker

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/temporal"

	"burrow.dev/burrow/internal/errs"
)

const (
	// beatEvery: a cancellation reaches an activity with its next heartbeat, and should do
	// so within a second.
	beatEvery = 500 * time.Millisecond
	// messageMost bounds an error's text in the history; whole outputs belong into logs.
	messageMost = 2000
)

// edge is the interceptor that every activity runs in. It is the one place where an error
// becomes Temporal's (its type is the class), where a panic becomes a failed attempt, and
// where heartbeats are sent for activities that have nothing to say.
type edge struct {
	interceptor.WorkerInterceptorBase
}

// InterceptActivity implements interceptor.WorkerInterceptor; it is called for each attempt.
func (*edge) InterceptActivity(_ context.Context, next interceptor.ActivityInboundInterceptor) interceptor.ActivityInboundInterceptor {
	in := &inbound{}
	in.Next = next
	return in
}

type inbound struct {
	interceptor.ActivityInboundInterceptorBase
	out *outbound
}

// Init implements interceptor.ActivityInboundInterceptor.
func (i *inbound) Init(out interceptor.ActivityOutboundInterceptor) error {
	i.out = &outbound{}
	i.out.Next = out
	return i.Next.Init(i.out)
}

// ExecuteActivity implements interceptor.ActivityInboundInterceptor.
func (i *inbound) ExecuteActivity(ctx context.Context, in *interceptor.ExecuteActivityInput) (result any, err error) {
	if activity.GetInfo(ctx).HeartbeatTimeout > 0 {
		stop := i.out.beat(ctx)
		defer stop()
	}
	defer func() {
		if p := recover(); p != nil {
			activity.GetLogger(ctx).Error("activity panicked", "panic", p, "stack", string(debug.Stack()))
			err = temporal.NewApplicationError(fmt.Sprintf("%s: panic: %v; report this", activity.GetInfo(ctx).ActivityType.Name, p), string(errs.Transient))
		}
	}()
	result, err = i.Next.ExecuteActivity(ctx, in)
	return result, toTemporal(err)
}

// toTemporal gives an error its class as Temporal's type. A cancellation stays one.
func toTemporal(err error) error {
	var app *temporal.ApplicationError
	switch {
	case err == nil, errors.As(err, &app), temporal.IsCanceledError(err):
		return err
	case errors.Is(err, context.Canceled):
		return context.Canceled
	}
	class := errs.ClassOf(err)
	return temporal.NewApplicationErrorWithOptions(messageOf(err), string(class),
		temporal.ApplicationErrorOptions{NonRetryable: class != errs.Transient, Details: detailsOf(err)})
}

// detailsOf are what an error says for programs, kept in the history with it.
func detailsOf(err error) []any {
	var e interface{ Details() any }
	if errors.As(err, &e) {
		return []any{e.Details()}
	}
	return nil
}

// messageOf is an error's text, bounded, and UTF-8 whatever a program or a file's name had
// in it: Temporal takes no other, and an answer it does not take is an attempt that hangs.
func messageOf(err error) string {
	message := strings.ToValidUTF8(err.Error(), "�")
	if len(message) <= messageMost {
		return message
	}
	return strings.ToValidUTF8(message[:messageMost], "") + "…"
}

// outbound remembers the last heartbeat, so that it can be sent again while nothing new
// happens.
type outbound struct {
	interceptor.ActivityOutboundInterceptorBase
	mu   sync.Mutex
	last []any
}

// RecordHeartbeat implements interceptor.ActivityOutboundInterceptor. A cancelled activity
// beats on while it cleans up: it is waited for only as long as it does.
func (o *outbound) RecordHeartbeat(ctx context.Context, details ...any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.last = details
	o.Next.RecordHeartbeat(context.WithoutCancel(ctx), details...)
}

// beat sends the last heartbeat again and again, also after ctx was cancelled, until stop
// is called, which waits for it.
func (o *outbound) beat(ctx context.Context) (stop func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(beatEvery)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				o.mu.Lock()
				o.Next.RecordHeartbeat(context.WithoutCancel(ctx), o.last...)
				o.mu.Unlock()
			}
		}
	}()
	return func() { close(done); <-ended }
}
