package cli

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	enumspb "go.temporal.io/api/enums/v1"

	"burrow.dev/burrow/cli/follow"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/workflows"
)

// verdict turns the ends of operations into one error with its exit code: failed before
// held before busy before well. What a check has found is told of each server.
func verdict(outcomes []follow.Outcome) error {
	var worst *ExitError
	worse := func(code int, format string, args ...any) {
		if worst == nil || slices.Index(severity, code) < slices.Index(severity, worst.Code) {
			worst = &ExitError{Code: code, Err: fmt.Errorf(format, args...)}
		}
	}
	left := false
	var checked []error
	for _, o := range outcomes {
		switch {
		case o.Held:
			left = true
			worse(ExitHeld, "%s waits for you: %s. Mend it and `burrow retry %s`, or give up with `burrow abort %s`",
				o.ID, strings.TrimPrefix(o.Message, o.ID+": "), o.ID, o.ID)
		case o.Kind == workflows.NameApplyDocuments && o.Status == enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED:
			applyVerdict(o, worse)
		case o.Kind == workflows.NameConfigureServer && o.Status == enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED:
			if err := checkVerdict(o); err != nil {
				checked = append(checked, err)
			}
		case o.Status == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, o.Status == enumspb.WORKFLOW_EXECUTION_STATUS_UNSPECIFIED:
			// It only waits for something that is held.
		case o.Status != enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED:
			left = left || !givenUp(o)
			worse(ExitFailed, "%s: %s", o.ID, strings.TrimPrefix(o.Message, o.ID+": "))
		}
	}
	switch {
	case worst == nil:
		return together(checked...)
	case worst.Code == ExitFailed && !left:
		return together(append(checked, &givenUpError{worst})...)
	}
	return together(append(checked, worst)...)
}

// severity is the order in which ends of several operations, and refusals of others,
// decide the exit code.
var severity = []int{ExitFailed, ExitHeld, ExitBusy, ExitInvalid, ExitOther, ExitDiffers, ExitStopped}

// givenUp reports whether an operation ended as one that a person cancels or aborts: what
// an undo could not remove makes its error Permanent, whatever it was before.
func givenUp(o follow.Outcome) bool {
	return o.Status == enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED || o.Class == string(errs.Operator)
}

// checkVerdict says what a playbook that was only checked would change: of each server,
// since that is what was asked for.
func checkVerdict(o follow.Outcome) error {
	var out workflows.ConfigureServerOut
	if json.Unmarshal(o.Result, &out) != nil || !out.Check {
		return nil
	}
	changed := 0
	for _, r := range out.Recap {
		changed += r.Changed
	}
	if changed == 0 {
		return nil
	}
	return &ExitError{Code: ExitDiffers, Err: fmt.Errorf("%s: tasks that would change something: %d. See them: burrow logs %s --run %s", o.ID, changed, nameOf(o.ID), out.RunID)}
}

// applyVerdict reports documents that have no workflow of their own to report them.
func applyVerdict(o follow.Outcome, worse func(int, string, ...any)) {
	var out workflows.ApplyOut
	if json.Unmarshal(o.Result, &out) != nil {
		return
	}
	for _, r := range out.Results {
		switch {
		case r.Error == "":
		case r.Busy:
			worse(ExitBusy, "%s", r.Error)
		case r.Skipped:
			worse(ExitFailed, "%s %s", r.Ref, r.Error)
		}
	}
}
