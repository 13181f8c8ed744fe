package ansiblex

import (
	"fmt"
	"os"
	"sort"
	"sync"
	"unicode/utf8"

	"burrow.dev/burrow/internal/plaintext"
)

const (
	// maxLog bounds a run's log. A playbook that prints more is debugging itself.
	maxLog = 16 << 20
	// maxTail is what is kept of the end when the log exceeds maxLog: the end says why.
	maxTail = 64 << 10
	// maxPending bounds an unfinished line of a stream.
	maxPending = 64 << 10
)

// Log is the log of a run: clean text of several writers, line by line, bounded. Safe
// for concurrent use.
type Log struct {
	mu      sync.Mutex
	file    *os.File
	written int64
	limit   int64
	skipped int64
	tail    []byte
	secrets *Redactor
}

// Hide keeps secrets out of what is written from now on. Call it before anything runs.
func (l *Log) Hide(r *Redactor) { l.secrets = r }

// OpenLog makes the run's log, or goes on with it.
func (f *Folder) OpenLog() (*Log, error) {
	file, err := os.OpenFile(f.LogFile(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	return &Log{file: file, limit: maxLog}, nil
}

// Printf writes a line of burrow's own.
func (l *Log) Printf(format string, args ...any) {
	l.add([]byte("burrow: " + plaintext.Line(l.secrets.Text(fmt.Sprintf(format, args...)), maxMessage) + "\n"))
}

func (l *Log) add(p []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.written+int64(len(p)) <= l.limit && l.skipped == 0 {
		n, _ := l.file.Write(p) // a full disk must not end the run
		l.written += int64(n)
		return
	}
	l.skipped += int64(len(p))
	l.tail = append(l.tail, p...)
	if len(l.tail) > maxTail {
		l.tail = append([]byte(nil), l.tail[len(l.tail)-maxTail:]...)
	}
}

// Close writes what was kept of the end, and closes the file.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.skipped > 0 {
		for len(l.tail) > 0 && !utf8.RuneStart(l.tail[0]) {
			l.tail = l.tail[1:]
		}
		fmt.Fprintf(l.file, "burrow: %d bytes are left out here\n%s", l.skipped-int64(len(l.tail)), l.tail)
	}
	return l.file.Close()
}

// stream is one source of a log.
type stream struct {
	log     *Log
	cleaner plaintext.Cleaner
	pending []byte
	last    *lastLines
}

func newStream(log *Log) *stream { return &stream{log: log, last: &lastLines{}} }

// Write takes output in any pieces and passes it on in whole lines.
func (s *stream) Write(p []byte) (int, error) {
	s.pending = s.cleaner.Append(s.pending, p)
	covered, most := s.secrets()
	end := most
	for end > 0 && (s.pending[end-1] != '\n' || inside(covered, end)) {
		end--
	}
	if end == 0 && len(s.pending) > maxPending {
		end = most
	}
	s.pass(end, covered)
	return len(p), nil
}

// secrets tells where secrets are in what is pending, and how much of it may be passed on:
// all before what may still become one.
func (s *stream) secrets() (covered []span, most int) {
	if s.log.secrets == nil {
		return nil, len(s.pending)
	}
	covered, most = s.log.secrets.find(s.pending)
	if len(s.pending) > maxPending+s.log.secrets.longest {
		most = len(s.pending) // it goes on and on: a secret that repeats itself
	}
	return covered, most
}

// inside reports whether a text that is cut at a place is cut within a secret.
func inside(covered []span, at int) bool {
	i := sort.Search(len(covered), func(i int) bool { return covered[i].end > at })
	return i < len(covered) && covered[i].start < at
}

// pass passes the beginning of what is pending on, which cuts no secret.
func (s *stream) pass(end int, covered []span) {
	if end == 0 {
		return
	}
	n := sort.Search(len(covered), func(i int) bool { return covered[i].end > end })
	text := replace(s.pending[:end], covered[:n])
	s.log.add(text)
	s.last.add(text)
	s.pending = append(s.pending[:0], s.pending[end:]...)
}

// flush passes an unfinished line on, at the end.
func (s *stream) flush() {
	s.pending = s.cleaner.Flush(s.pending)
	if n := len(s.pending); n > 0 && s.pending[n-1] != '\n' {
		s.pending = append(s.pending, '\n')
	}
	covered, _ := s.secrets()
	s.pass(len(s.pending), covered)
}

// lastLines keeps the end of a stream, for an error's text.
type lastLines struct{ text []byte }

func (l *lastLines) add(p []byte) {
	l.text = append(l.text, p...)
	if len(l.text) > 2*maxTail {
		l.text = append([]byte(nil), l.text[len(l.text)-maxTail:]...)
	}
}
