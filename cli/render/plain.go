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
			}
			if text := p.change(fmt.Sprintf("%s/%d", op.ID, i), before, step); text != "" {
				p.line("%s: %s %s", op.ID, step.Name, text)
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
		p.line("%s: %s%s%s", after.ID, after.State, took(after.Started, after.Ended), because(after.Message))
		return
	}
	if after.Message != "" && before.Message != after.Message {
		p.line("%s: %s", after.ID, after.Message)
	}
}

func (p *plainLines) line(format string, args ...any) {
	text := Clean(fmt.Sprintf(format, args...))
	if _, err := fmt.Fprintf(p.w, "%s %s\n", p.now().Format(time.TimeOnly), text); err != nil && p.err == nil {
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
