package sweep

import (
	"errors"

	"burrow.dev/burrow/internal/errs"
)

// errLives ends the removal of what has an owner after all, or another one by now.
var errLives = errors.New("it has an owner by now")

// clearAll removes findings one by one. What cannot be removed says so, keeps none of the
// others, and is tried again by the next sweep.
func clearAll(in ClearIn, remove func(Finding) error) ClearOut {
	out := ClearOut{Findings: make([]Finding, 0, len(in.Findings))}
	for _, f := range in.Findings {
		err := remove(f)
		switch {
		case errors.Is(err, errLives):
			continue
		case err != nil && !errors.Is(err, errs.ErrNotFound):
			f.Error = cutText(err.Error())
			f.Verdict, f.Next = VerdictWait, "the next sweep tries again"
		default:
			f.Verdict, f.Next = VerdictMended, "removed"
		}
		out.Findings = append(out.Findings, f)
	}
	return out
}

// textMost bounds an error's text in a report.
const textMost = 300

func cutText(s string) string {
	if len(s) <= textMost {
		return s
	}
	return s[:textMost] + "…"
}
