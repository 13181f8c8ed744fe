package supervise

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"
)

const (
	// logLimit is the size at which a log is rotated.
	logLimit = 16 << 20
	// logKeep is how many rotated files of a log are kept: log.1 is the newest.
	logKeep = 3
	// rotateEvery is how often sizes are looked at; a log can outgrow its limit by what
	// is written in between.
	rotateEvery = 10 * time.Second
	// tailBytes and tailLines bound what an error shows of a log.
	tailBytes = 8 << 10
	tailLines = 15
)

func (s *Supervisor) logFolder() string { return filepath.Join(s.Dir, "log") }

// logOf is the file of a part's output.
func (s *Supervisor) logOf(part string) string { return filepath.Join(s.logFolder(), part+".log") }

func (s *Supervisor) log() *slog.Logger {
	if s.Log == nil {
		return slog.Default()
	}
	return s.Log
}

func (s *Supervisor) tell(part, text string) {
	s.log().Info(text, "part", part)
	if s.Progress != nil {
		s.Progress(Event{Part: part, Text: text})
	}
}

// lastLines shows the end of a part's log.
func (s *Supervisor) lastLines(part string) string {
	lines, err := tail(s.logOf(part))
	if err != nil {
		return err.Error()
	}
	return lines
}

// tail gives the last lines of a file.
func tail(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("read log: %w", err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return "", fmt.Errorf("read log: %w", err)
	}
	text, err := io.ReadAll(io.NewSectionReader(file, max(0, info.Size()-tailBytes), tailBytes))
	if err != nil {
		return "", fmt.Errorf("read log: %w", err)
	}
	lines := bytes.Split(bytes.TrimRight(text, "\n"), []byte("\n"))
	return string(bytes.Join(lines[max(0, len(lines)-tailLines):], []byte("\n"))), nil
}

// rotateLogs looks at the sizes until ctx ends.
func (s *Supervisor) rotateLogs(ctx context.Context) error {
	ticker := time.NewTicker(rotateEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		logs, err := filepath.Glob(filepath.Join(s.logFolder(), "*.log"))
		if err != nil {
			return fmt.Errorf("logs of %s: list: %w", s.Dir, err)
		}
		for _, log := range logs {
			if err := rotate(log, logLimit); err != nil {
				s.log().Error("rotate log", "log", log, "error", err)
			}
		}
	}
}

// rotate copies a log that has outgrown its limit to log.1 and empties it in place:
// its writers append to the file they have open, and live longer than any supervisor.
// A line written between copy and cut is lost.
func rotate(log string, limit int64) error {
	info, err := os.Stat(log)
	if errors.Is(err, fs.ErrNotExist) || (err == nil && info.Size() < limit) {
		return nil
	}
	if err != nil {
		return err
	}
	for n := logKeep; n > 1; n-- {
		err := os.Rename(fmt.Sprintf("%s.%d", log, n-1), fmt.Sprintf("%s.%d", log, n))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := copyFile(log, log+".1"); err != nil {
		return err
	}
	return os.Truncate(log, 0)
}

func copyFile(from, to string) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o640)
	if err != nil {
		return err
	}
	_, err = io.Copy(target, source)
	return errors.Join(err, target.Close())
}
