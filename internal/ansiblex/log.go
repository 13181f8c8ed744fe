package ansiblex

import (
	"fmt"
	"os"
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
}

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
	l.add([]byte("burrow: " + plaintext.Line(fmt.Sprintf(format, args...), maxMessage) + "\n"))
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

// Write takes output in any pieces and passes it on in whole lines.
func (s *stream) Write(p []byte) (int, error) {
	s.pending = s.cleaner.Append(s.pending, p)
	end := len(s.pending)
	for end > 0 && s.pending[end-1] != '\n' {
		end--
	}
	if end == 0 && len(s.pending) > maxPending {
		end = len(s.pending)
	}
	s.pass(end)
	return len(p), nil
}

func (s *stream) pass(end int) {
	if end == 0 {
		return
	}
	s.log.add(s.pending[:end])
	s.last.add(s.pending[:end])
	s.pending = append(s.pending[:0], s.pending[end:]...)
}

// flush passes an unfinished line on, at the end.
func (s *stream) flush() {
	s.pending = s.cleaner.Flush(s.pending)
	if len(s.pending) > 0 {
		s.pending = append(s.pending, '\n')
	}
	s.pass(len(s.pending))
}

// lastLines keeps the end of a stream, for an error's text.
type lastLines struct{ text []byte }

func (l *lastLines) add(p []byte) {
	l.text = append(l.text, p...)
	if len(l.text) > 2*maxTail {
		l.text = append([]byte(nil), l.text[len(l.text)-maxTail:]...)
	}
}
