package render

import (
	"fmt"
	"io"
	"time"
)

// detailEvery bounds how often a change of detail alone makes a line: a download
// reports twice a second, and a CI log wants to be read.
const detailEvery = 5 * time.Second

// newPlain writes one line per change.
func newPlain(w io.Writer, now func() time.Time) *plainLines {
	return &plainLines{w: w, now: now, last: map[string]Operation{}, detailAt: map[string]time.Time{}}
}

type plainLines struct {
	w        io.Writer
	now      func() time.Time
	last     map[string]Operation // by ID
	detailAt map[string]time.Time // when a step last had a line, by ID and index
	err      error
}

// Update implements Renderer.
func (p *plainLines) Update(ops []Operation) {
	for _, op := range ops {
		old, known := p.last[op.ID]
		for i, step := range op.Steps {
			var before Step
			if known && i < len(old.Steps) && old.Steps[i].Name == step.Name {
				before = old.Steps[i]
				before.LastError = without(op.ID, before.LastError)
			}
			step.LastError = without(op.ID, step.LastError)
			if text := p.change(fmt.Sprintf("%s/%d", op.ID, i), before, step); text != "" {
				p.line(changedAt(op, before, step), "%s: %s %s", op.ID, step.Name, text)
			}
		}
		p.summary(old, op)
		p.last[op.ID] = snapshot(op)
	}
}

// change says in words what happened to a step; empty when nothing worth a line did.
func (p *plainLines) change(key string, before, after Step) string {
	now := p.now()
	switch {
	case after.State == Pending || after.State == "":
		return ""
	case after.State == Retrying &&
		(before.State != Retrying || before.Attempt != after.Attempt || before.LastError != after.LastError):
		p.detailAt[key] = now
		return retryText(after, now)
	case before.State != after.State:
		p.detailAt[key] = now
		return stateText(after, now)
	case after.State.active() && after.Detail != before.Detail && after.Detail != "" &&
		now.Sub(p.detailAt[key]) >= detailEvery:
		p.detailAt[key] = now
		return "… " + after.Detail
	}
	return ""
}

func (p *plainLines) summary(before, after Operation) {
	if before.State != after.State && !after.State.active() && after.State != Pending && after.State != "" {
		p.line(settledAt(after), "%s: %s%s%s", after.ID, after.State, took(after.Started, after.Ended), because(without(after.ID, after.Message)))
		return
	}
	if after.Message != "" && before.Message != after.Message {
		p.line(time.Time{}, "%s: %s", after.ID, without(after.ID, after.Message))
	}
}

// changedAt is when a step's change happened: a history that is read again has changes of
// long ago. Zero when only the moment it is seen is known.
func changedAt(op Operation, before, after Step) time.Time {
	switch {
	case !after.State.active() && after.Ended.IsZero():
		return op.Ended // it never ran
	case !after.State.active():
		return after.Ended
	case before.State != after.State && after.State != Retrying && !after.Started.Equal(before.Started):
		return after.Started
	}
	return time.Time{}
}

// settledAt is when an operation ended, or was held: with the last step that did.
func settledAt(op Operation) time.Time {
	at := op.Ended
	if op.State == Held {
		for _, s := range op.Steps {
			if s.Ended.After(at) {
				at = s.Ended
			}
		}
	}
	return at
}

// line writes what happened at a time (zero: now, which a clock elsewhere may be ahead
// of), with its day when that is another one.
func (p *plainLines) line(at time.Time, format string, args ...any) {
	now := p.now()
	if at.IsZero() || at.After(now) {
		at = now
	}
	at = at.In(now.Location())
	layout := time.TimeOnly
	if at.Format(time.DateOnly) != now.Format(time.DateOnly) {
		layout = time.DateTime
	}
	text := Clean(fmt.Sprintf(format, args...))
	if _, err := fmt.Fprintf(p.w, "%s %s\n", at.Format(layout), text); err != nil && p.err == nil {
		p.err = err
	}
}

// Close implements Renderer.
func (p *plainLines) Close() error { return p.err }

func retryText(s Step, now time.Time) string {
	text := "failed, will be tried again"
	if s.Attempt > 0 {
		text = fmt.Sprintf("attempt %d failed, will be tried again", s.Attempt)
	}
	if wait := s.NextTry.Sub(now); wait > 0 {
		text += " in " + elapsed(wait)
	}
	return text + because(s.LastError)
}

func stateText(s Step, now time.Time) string {
	switch s.State {
	case Running:
		text := "started"
		if s.Attempt > 1 {
			text = fmt.Sprintf("attempt %d started", s.Attempt)
		}
		return text + because(s.Detail)
	case Done, Undone, Skipped:
		return string(s.State) + took(s.Started, s.Ended) + because(s.Detail)
	case Failed, Held:
		return string(s.State) + took(s.Started, s.Ended) + because(s.LastError)
	}
	return string(s.State) + because(s.Detail)
}

// because appends a reason after a colon, when there is one.
func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}

func took(from, to time.Time) string {
	if from.IsZero() || to.IsZero() || to.Before(from) {
		return ""
	}
	return " (" + elapsed(to.Sub(from)) + ")"
}

// elapsed is a duration for people: 0.3s, 42s, 3m05s, 1h02m.
func elapsed(d time.Duration) string {
	switch {
	case d < 0:
		return "0s"
	case d < 10*time.Second:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
}
