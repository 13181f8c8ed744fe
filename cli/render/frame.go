package render

import (
	"fmt"
	"strings"
	"time"

	"github.com/mattn/go-runewidth"
)

// painter makes the lines of one frame.
type painter struct{ colour bool }

// SGR colours by meaning.
const (
	green  = "32"
	red    = "31"
	yellow = "33"
	cyan   = "36"
	dim    = "2"
	bold   = "1"
)

const spinner = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"

// frame gives at most rows-1 lines (the cursor rests below them), none wider than
// columns. When not all fits, what is over and what is to come is folded first.
func (p painter) frame(ops []Operation, now time.Time, tick, columns, rows int) []string {
	limit := max(1, rows-1)
	for _, keep := range []func(Step) bool{everyStep, notPending, activeOrFailed} {
		lines := p.lines(ops, now, tick, columns, keep)
		if len(lines) <= limit {
			return lines
		}
	}
	lines := p.lines(ops, now, tick, columns, activeOrFailed)
	hidden := len(lines) - limit + 1
	return append(lines[:limit-1], p.fit(fmt.Sprintf("… %d more lines", hidden), columns, dim))
}

func everyStep(Step) bool        { return true }
func notPending(s Step) bool     { return s.State != Pending && s.State != "" }
func activeOrFailed(s Step) bool { return s.State.active() || s.State == Failed || s.State == Held }

func (p painter) lines(ops []Operation, now time.Time, tick, columns int, keep func(Step) bool) []string {
	var lines []string
	for _, op := range ops {
		lines = append(lines, p.heading(op, now, tick, columns))
		if op.State != Done {
			lines = append(lines, p.steps(op, now, tick, columns, keep)...)
		}
		if op.Message != "" {
			lines = append(lines, p.fit("  "+Clean(without(op.ID, op.Message)), columns, colourOf(op.State)))
		}
	}
	return lines
}

func (p painter) heading(op Operation, now time.Time, tick, columns int) string {
	glyph, colour := glyphOf(op.State, tick)
	text := glyph + " " + Clean(op.Title)
	if op.State.active() || op.State == Held {
		colour = bold
	}
	return p.fit(withTime(text, op.Started, op.Ended, now), columns, colour)
}

func (p painter) steps(op Operation, now time.Time, tick, columns int, keep func(Step) bool) []string {
	width := 0
	for _, s := range op.Steps {
		width = max(width, runewidth.StringWidth(Clean(s.Name)))
	}
	var lines []string
	hidden := 0
	for _, s := range op.Steps {
		if !keep(s) {
			hidden++
			continue
		}
		s.LastError = without(op.ID, s.LastError)
		lines = append(lines, p.step(s, width, now, tick, columns)...)
	}
	if hidden > 0 {
		lines = append(lines, p.fit(fmt.Sprintf("    … %d more steps", hidden), columns, dim))
	}
	return lines
}

// step is one line, and a second one with the error while there is one.
func (p painter) step(s Step, nameWidth int, now time.Time, tick, columns int) []string {
	glyph, colour := glyphOf(s.State, tick)
	name := Clean(s.Name)
	text := "  " + glyph + " " + name + strings.Repeat(" ", nameWidth-runewidth.StringWidth(name))
	text = withTime(text, s.Started, s.Ended, now)
	if s.Attempt > 1 && s.State.active() {
		text += fmt.Sprintf("  attempt %d", s.Attempt)
	}
	if s.State == Retrying {
		if wait := s.NextTry.Sub(now); wait > 0 {
			text += ", next try in " + elapsed(wait)
		}
	}
	if s.Detail != "" {
		text += "  " + Clean(s.Detail)
	}
	lines := []string{p.fit(strings.TrimRight(text, " "), columns, colour)}
	if s.LastError != "" && (s.State == Retrying || s.State == Failed || s.State == Held) {
		lines = append(lines, p.fit("      "+Clean(s.LastError), columns, colourOf(s.State)))
	}
	return lines
}

func withTime(text string, from, to, now time.Time) string {
	if from.IsZero() {
		return text
	}
	if to.IsZero() {
		to = now
	}
	return text + "  " + elapsed(to.Sub(from))
}

func glyphOf(s State, tick int) (glyph, colour string) {
	frames := []rune(spinner)
	switch s {
	case Running, Undoing:
		return string(frames[tick%len(frames)]), colourOf(s)
	case Retrying:
		return "↻", colourOf(s)
	case Done:
		return "✓", colourOf(s)
	case Failed:
		return "✗", colourOf(s)
	case Held:
		return "‖", colourOf(s)
	case Undone:
		return "↶", colourOf(s)
	case Skipped:
		return "-", colourOf(s)
	}
	return "·", dim
}

func colourOf(s State) string {
	switch s {
	case Done:
		return green
	case Failed:
		return red
	case Retrying, Held, Undoing:
		return yellow
	case Running:
		return cyan
	}
	return dim
}

// fit cuts text to the terminal's width and colours it.
func (p painter) fit(text string, columns int, colour string) string {
	if runewidth.StringWidth(text) > columns {
		text = runewidth.Truncate(text, columns, "…")
	}
	if !p.colour || colour == "" {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

// stripSGR takes our own colours out again, to measure a line.
func stripSGR(line string) string {
	if !strings.HasPrefix(line, "\x1b[") {
		return line
	}
	_, line, _ = strings.Cut(line, "m")
	return strings.TrimSuffix(line, "\x1b[0m")
}
