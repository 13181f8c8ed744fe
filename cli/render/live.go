package render

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/mattn/go-runewidth"
	"golang.org/x/term"
)

// redrawEvery turns the spinner and the elapsed times; ten frames a second look
// alive and cost nothing over a slow SSH line.
const redrawEvery = 100 * time.Millisecond

// Size of a terminal that does not tell its own.
const (
	defaultColumns = 80
	defaultRows    = 24
)

// live keeps a region at the bottom of the terminal and redraws it in place. It
// reads nothing from the terminal, so Ctrl-C stays a signal, and it writes each frame
// at once, so that nothing flickers.
type live struct {
	w     io.Writer
	now   func() time.Time
	size  func() (columns, rows int)
	paint painter

	mu     sync.Mutex
	ops    []Operation
	drawn  []string // the frame on the screen, one entry a line
	frame  int      // spinner position
	err    error
	closed bool

	stop, stopped chan struct{}
}

func newLive(w io.Writer, now func() time.Time, every time.Duration) *live {
	l := &live{
		w: w, now: now, size: sizeOf(w), paint: painter{colour: os.Getenv("NO_COLOR") == ""},
		stop: make(chan struct{}), stopped: make(chan struct{}),
	}
	go l.run(every)
	return l
}

// run redraws until Close; it is the only goroutine of a live view.
func (l *live) run(every time.Duration) {
	defer close(l.stopped)
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-l.stop:
			return
		case <-tick.C:
			l.mu.Lock()
			l.frame++
			l.draw()
			l.mu.Unlock()
		}
	}
}

// Update implements Renderer.
func (l *live) Update(ops []Operation) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ops = l.ops[:0]
	for _, op := range ops {
		l.ops = append(l.ops, snapshot(op))
	}
	if !l.closed {
		l.draw()
	}
}

// Close implements Renderer.
func (l *live) Close() error {
	l.mu.Lock()
	if l.closed {
		defer l.mu.Unlock()
		return l.err
	}
	l.closed = true
	l.mu.Unlock()
	close(l.stop)
	<-l.stopped
	l.mu.Lock()
	defer l.mu.Unlock()
	l.draw()
	return l.err
}

// draw writes the frame over the last one. A line that did not change is stepped over.
func (l *live) draw() {
	columns, rows := l.size()
	lines := l.paint.frame(l.ops, l.now(), l.frame, columns-1, rows)
	var b strings.Builder
	if up := rowsOf(l.drawn, columns); up > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", up)
	}
	b.WriteByte('\r')
	for _, line := range lines {
		b.WriteString(line)
		b.WriteString("\x1b[K\n")
	}
	b.WriteString("\x1b[J")
	l.drawn = lines
	if _, err := io.WriteString(l.w, b.String()); err != nil && l.err == nil {
		l.err = err
	}
}

// rowsOf is how many rows lines take: a terminal that became narrower has wrapped them.
func rowsOf(lines []string, columns int) int {
	rows := 0
	for _, line := range lines {
		rows += max(1, (runewidth.StringWidth(stripSGR(line))+columns-1)/columns)
	}
	return rows
}

func sizeOf(w io.Writer) func() (int, int) {
	file, ok := w.(*os.File)
	return func() (int, int) {
		if ok {
			if columns, rows, err := term.GetSize(int(file.Fd())); err == nil && columns > 0 && rows > 0 {
				return columns, rows
			}
		}
		return defaultColumns, defaultRows
	}
}
