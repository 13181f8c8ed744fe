package render

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mattn/go-runewidth"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

var update = flag.Bool("update", false, "write golden files")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}

// start is when the operation of these tests began.
func start() time.Time { return time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC) }

func after(seconds float64) time.Time {
	return start().Add(time.Duration(seconds * float64(time.Second)))
}

// story is an operation at some moments of its life.
func story() []Operation {
	db := Operation{ID: "server/db", Title: "server/db ProvisionServer", State: Running, Started: start()}
	step := func(name string, state State, from, to float64) Step {
		s := Step{Name: name, State: state}
		if from >= 0 {
			s.Started = after(from)
		}
		if to >= 0 {
			s.Ended = after(to)
		}
		return s
	}
	at := func(op Operation, steps ...Step) Operation {
		op.Steps = steps
		return op
	}
	retrying := step("ensure image", Retrying, 0.5, -1)
	retrying.Attempt, retrying.LastError, retrying.NextTry = 3, "image debian12: download: connection \x1b[31mreset\x1b[0m\nby peer", after(8)
	running := step("ensure image", Running, 0.5, -1)
	running.Attempt, running.Detail = 4, "download 40 %"
	failed := step("wire OVS", Failed, 9, 10)
	failed.LastError = "bridge br-db-net: absent"
	over := at(db, step("place", Done, 0, 0.5), step("ensure image", Undone, 0.5, 9), failed, step("run playbook", Skipped, -1, -1))
	over.State, over.Ended, over.Message = Failed, after(12), "wire OVS: bridge br-db-net: absent; start Open vSwitch"
	return []Operation{
		at(db, step("place", Running, 0, -1), step("ensure image", Pending, -1, -1), step("wire OVS", Pending, -1, -1), step("run playbook", Pending, -1, -1)),
		at(db, step("place", Done, 0, 0.5), retrying, step("wire OVS", Pending, -1, -1), step("run playbook", Pending, -1, -1)),
		at(db, step("place", Done, 0, 0.5), running, step("wire OVS", Pending, -1, -1), step("run playbook", Pending, -1, -1)),
		over,
	}
}

func TestLinesTellEachChangeOnce(t *testing.T) {
	var out bytes.Buffer
	now := start()
	p := newPlain(&out, func() time.Time { return now })
	for i, op := range story() {
		now = after(float64(i * 3))
		p.Update([]Operation{op})
		p.Update([]Operation{op}) // nothing new
	}
	require.NoError(t, p.Close())
	golden(t, "lines.txt", out.String())
}

func TestLinesOfAnEarlierHistoryHaveItsTimes(t *testing.T) {
	var out bytes.Buffer
	tomorrow := after(24 * 60 * 60).In(time.FixedZone("CET", 60*60))
	p := newPlain(&out, func() time.Time { return tomorrow })
	over := story()[3]
	over.Message, over.Steps[2].LastError = "server/db: "+over.Message, "server/db: "+over.Steps[2].LastError
	p.Update([]Operation{over})
	held := Operation{ID: "server/web", State: Held, Message: "it waits", Started: tomorrow.Add(-time.Hour), Steps: []Step{
		{Name: "run playbook", State: Held, Started: tomorrow.Add(-time.Hour), Ended: tomorrow.Add(-time.Minute)},
	}}
	p.Update([]Operation{held})
	held.State, held.Steps[0].State, held.Steps[0].Ended, held.Message = Running, Running, time.Time{}, ""
	p.Update([]Operation{held})
	require.NoError(t, p.Close())
	golden(t, "earlier.txt", out.String())
}

func TestLinesDoNotRepeatAProgressThatTicks(t *testing.T) {
	var out bytes.Buffer
	now := start()
	p := newPlain(&out, func() time.Time { return now })
	op := Operation{ID: "server/db", State: Running, Steps: []Step{{Name: "ensure image", State: Running, Started: start()}}}
	for i := range 100 {
		now = after(float64(i) / 10)
		op.Steps[0].Detail = strings.Repeat("#", i)
		p.Update([]Operation{op})
	}
	require.Equal(t, 2, strings.Count(out.String(), "\n"), out.String()) // its start, and once in ten seconds
}

func TestObjectsAreWrittenOnlyWhenTheyChange(t *testing.T) {
	var out bytes.Buffer
	j := NewJSON(&out)
	for _, op := range story() {
		j.Update([]Operation{op})
		j.Update([]Operation{op})
	}
	require.NoError(t, j.Close())
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.Len(t, lines, len(story()))
	var op Operation
	require.NoError(t, json.Unmarshal([]byte(lines[3]), &op))
	require.Equal(t, story()[3], op)
}

func TestFramesLookLikeThis(t *testing.T) {
	var all strings.Builder
	for i, op := range story() {
		for _, size := range []struct{ columns, rows int }{{80, 24}, {30, 24}, {80, 5}} {
			lines := painter{}.frame([]Operation{op}, after(float64(i*3)+1), i, size.columns, size.rows)
			require.LessOrEqual(t, len(lines), size.rows-1)
			for _, line := range lines {
				require.LessOrEqual(t, runewidth.StringWidth(line), size.columns)
			}
			all.WriteString(strings.Join(lines, "\n") + "\n---\n")
		}
	}
	golden(t, "frames.txt", all.String())
}

func TestManyOperationsNeverOutgrowTheTerminal(t *testing.T) {
	var ops []Operation
	for range 50 {
		ops = append(ops, story()[1])
	}
	for rows := 2; rows < 200; rows += 7 {
		require.LessOrEqual(t, len(painter{}.frame(ops, after(5), 0, 80, rows)), rows-1)
	}
}

func TestTheLiveViewRedrawsInPlaceAndLeavesTheLastFrame(t *testing.T) {
	t.Setenv("NO_COLOR", "")
	var out bytes.Buffer
	l := newLive(&out, func() time.Time { return after(13) }, time.Hour)
	for _, op := range story() {
		l.Update([]Operation{op})
	}
	require.NoError(t, l.Close())
	require.NoError(t, l.Close())
	want := painter{}.frame([]Operation{story()[3]}, after(13), 0, defaultColumns-1, defaultRows)
	require.Equal(t, want, screen(t, out.String()))
	require.Contains(t, out.String(), "\x1b[32m", "in colour")
}

func TestNoColourMeansNone(t *testing.T) {
	t.Setenv("NO_COLOR", "1")
	var out bytes.Buffer
	l := newLive(&out, time.Now, time.Hour)
	l.Update(story()[:1])
	require.NoError(t, l.Close())
	require.NotRegexp(t, `\x1b\[[0-9;]*m`, out.String())
}

func TestADumbTerminalGetsLines(t *testing.T) {
	t.Setenv("TERM", "dumb")
	var out bytes.Buffer
	r := New(&out, true)
	r.Update(story()[:1])
	require.NoError(t, r.Close())
	require.NotContains(t, out.String(), "\x1b")
}

func TestTheSpinnerTurnsByItself(t *testing.T) {
	w := &counting{enough: make(chan struct{})}
	l := newLive(w, time.Now, time.Millisecond)
	l.Update(story()[:1])
	<-w.enough
	require.NoError(t, l.Close())
}

// counting closes enough after a few writes.
type counting struct {
	n      int
	enough chan struct{}
}

func (c *counting) Write(p []byte) (int, error) {
	if c.n++; c.n == 5 {
		close(c.enough)
	}
	return len(p), nil
}

func TestAWriteErrorIsToldAtTheEnd(t *testing.T) {
	for _, r := range []Renderer{newPlain(broken{}, time.Now), NewJSON(broken{}), newLive(broken{}, time.Now, time.Hour)} {
		r.Update(story()[:1])
		require.ErrorContains(t, r.Close(), "pipe is gone")
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("pipe is gone") }

// screen plays what the live view wrote on a small terminal.
func screen(t *testing.T, written string) []string {
	t.Helper()
	var lines []string
	row := 0
	for len(written) > 0 {
		switch {
		case strings.HasPrefix(written, "\x1b["):
			end := strings.IndexAny(written[2:], "AKJm") + 2
			argument, kind := written[2:end], written[end]
			written = written[end+1:]
			switch kind {
			case 'A':
				up := 0
				for _, d := range argument {
					up = up*10 + int(d-'0')
				}
				row -= up
				require.GreaterOrEqual(t, row, 0)
			case 'J':
				lines = lines[:row]
			}
		case written[0] == '\r':
			written = written[1:]
			if row < len(lines) {
				lines[row] = ""
			}
		case written[0] == '\n':
			written = written[1:]
			if row++; row < len(lines) {
				lines[row] = ""
			}
		default:
			end := strings.IndexAny(written, "\x1b\r\n")
			if row == len(lines) {
				lines = append(lines, "")
			}
			lines[row] += written[:end]
			written = written[end:]
		}
	}
	return lines
}

func TestTablesLineUpAndAreClean(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, Table(&out, []string{"NAME", "PHASE", "AGE"}, [][]string{
		{"db", "Running", "5s"}, {"web-with-a-long-name", "", "3m"}, {"evil\x1b[2J\nx", "ünïcode", ""},
	}))
	golden(t, "table.txt", out.String())
}

func TestDurationsAreForPeople(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second: "0s", 0: "0.0s", 1234 * time.Millisecond: "1.2s", 42 * time.Second: "42s",
		185 * time.Second: "3m05s", 62 * time.Minute: "1h02m",
	} {
		require.Equal(t, want, elapsed(d))
	}
}
