package worker

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/temporal"

	"burrow.dev/burrow/internal/errs"
)

func TestAnErrorReachesTemporalWithItsClassAndWordsItCanTake(t *testing.T) {
	tests := map[string]struct {
		err    error
		class  errs.Class
		prefix string
	}{
		"operator":      {errs.NewOperator("server/db", "run playbook", errors.New("failed"), ""), errs.Operator, "server/db: run playbook: failed"},
		"unclassed":     {errors.New("no answer"), errs.Transient, "no answer"},
		"not UTF-8":     {errors.New("file \xff.iso"), errs.Transient, "file �.iso"},
		"cut in a rune": {errors.New("x" + strings.Repeat("→", messageMost)), errs.Transient, "x→"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var app *temporal.ApplicationError
			require.ErrorAs(t, toTemporal(tt.err), &app)
			require.Equal(t, string(tt.class), app.Type())
			require.Equal(t, tt.class != errs.Transient, app.NonRetryable())
			require.True(t, utf8.ValidString(app.Message()))
			require.True(t, strings.HasPrefix(app.Message(), tt.prefix), app.Message())
			require.LessOrEqual(t, len(app.Message()), messageMost+len("…"))
		})
	}
}

// recorder counts the heartbeats that arrive with a context that still lets them out.
type recorder struct {
	interceptor.ActivityOutboundInterceptorBase
	alive atomic.Int32
}

func (r *recorder) RecordHeartbeat(ctx context.Context, _ ...any) {
	if ctx.Err() == nil {
		r.alive.Add(1)
	}
}

// ended is an error that says how far what it ended had come.
type ended struct{ error }

func (ended) Details() any    { return map[string]string{"runId": "r1"} }
func (e ended) Unwrap() error { return e.error }

func TestWhatAnErrorSaysForProgramsIsKept(t *testing.T) {
	var app *temporal.ApplicationError
	require.ErrorAs(t, toTemporal(ended{errs.NewOperator("server/db", "run playbook", errors.New("failed"), "")}), &app)
	require.Equal(t, string(errs.Operator), app.Type())
	require.Equal(t, "server/db: run playbook: failed", app.Message())
	var kept map[string]string
	require.NoError(t, app.Details(&kept))
	require.Equal(t, "r1", kept["runId"])
	require.Equal(t, context.Canceled, toTemporal(ended{context.Canceled}))
}

func TestACancelledActivityBeatsOnUntilItHasEnded(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := &recorder{}
	o := &outbound{}
	o.Next = r
	stop := o.beat(ctx)
	require.Eventually(t, func() bool { return r.alive.Load() > 0 }, 10*beatEvery, beatEvery/10)
	stop()
	ended := r.alive.Load()
	o.RecordHeartbeat(ctx, "cleaning up")
	require.Equal(t, ended+1, r.alive.Load())
	require.Never(t, func() bool { return r.alive.Load() > ended+1 }, 2*beatEvery, beatEvery, "nothing beats after stop")
}
