package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"burrow.dev/burrow/activities/sweep"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/workflows"
)

// lateSweep is when the last sweep is too long ago: several were missed.
const lateSweep = 4 * workflows.SweepEvery

// checkSweep reports the last sweep. It is worth a warning when it could not do its work,
// or when something waits for a person.
func checkSweep(ctx context.Context, c client.Client) check {
	ctx, cancel := context.WithTimeout(ctx, temporalTimeout)
	defer cancel()
	d, err := c.DescribeWorkflow(ctx, workflows.IDSweep, "")
	var none *serviceerror.NotFound
	if errors.As(err, &none) {
		return check{Name: sweepName, Level: checkOK, Detail: "none yet: the first comes within " + workflows.SweepEvery.String()}
	}
	if err != nil {
		return judged(sweepName, checkWarn, errs.NewTransient(workflows.IDSweep, "look for the last one", err), "")
	}
	switch d.Status {
	case enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING:
		return check{Name: sweepName, Level: checkOK, Detail: "under way since " + age(d.WorkflowStartTime, time.Now())}
	case enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED:
	default:
		return check{Name: sweepName, Level: checkWarn, Detail: "the last one did not end well: " + d.Status.String(), Next: "burrow sweep tries again, and says why"}
	}
	var out workflows.SweepOut
	if err := c.GetWorkflow(ctx, workflows.IDSweep, d.WorkflowExecution.RunID).Get(ctx, &out); err != nil {
		return judged(sweepName, checkWarn, errs.NewTransient(workflows.IDSweep, "read its result", err), "")
	}
	return sweepVerdict(out, time.Now())
}

const sweepName = "sweep"

func sweepVerdict(out workflows.SweepOut, now time.Time) check {
	k := check{Name: sweepName, Level: checkOK}
	waits := 0
	for _, f := range out.Findings {
		if f.Verdict == sweep.VerdictAsk || f.Verdict == sweep.VerdictNote || f.Error != "" {
			waits++
		}
	}
	for _, s := range out.Settled {
		if !s.Done {
			waits++
		}
	}
	k.Detail = fmt.Sprintf("the last one was %s ago", age(out.At, now))
	switch {
	case waits > 0:
		k.Level, k.Next = checkWarn, "burrow drift lists them"
		k.Detail += fmt.Sprintf("; %d things wait for you", waits)
	case now.Sub(out.At) > lateSweep:
		k.Level, k.Next = checkWarn, "is the schedule paused, or no control worker up? burrow status"
	}
	return k
}
