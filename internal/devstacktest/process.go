package devstacktest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"time"
)

const (
	// startLimit is long because tests run beside builds and guests on two cores.
	startLimit = time.Minute
	// stopLimit is more than the program's own shutdown may take; then it is killed.
	stopLimit = 25 * time.Second
	// readinessProbe is how often the report is looked for.
	readinessProbe = 10 * time.Millisecond
)

// Report is the program's readiness report.
type Report struct {
	PID             int    `json:"pid"`
	TemporalAddress string `json:"temporalAddress"`
	Namespace       string `json:"namespace"`
	WebUI           string `json:"webUI"`
	EtcdEndpoint    string `json:"etcdEndpoint"`
	TLS             bool   `json:"tls"`
	StartupMillis   int64  `json:"startupMillis"`
}

// Process is a running burrow-devstack.
type Process struct {
	Report
	command  *exec.Cmd
	lifeline io.Closer
	exited   chan struct{}
	folder   string
	stderr   *tail
}

// Binary finds burrow-devstack or says how to build it.
func Binary() (string, error) {
	if path := os.Getenv("BURROW_DEVSTACK"); path != "" {
		return path, nil
	}
	_, here, _, ok := runtime.Caller(0)
	if !ok {
		return "", errors.New("burrow-devstack: the place of the sources is unknown; set BURROW_DEVSTACK")
	}
	path := filepath.Join(filepath.Dir(here), "..", "..", "bin", "burrow-devstack")
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("burrow-devstack: not built (%w); run: make build", err)
	}
	return path, nil
}

// Start runs the program with args and returns when it serves. The caller must Stop it.
func Start(ctx context.Context, args ...string) (*Process, error) {
	binary, err := Binary()
	if err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp("", "devstack-")
	if err != nil {
		return nil, fmt.Errorf("burrow-devstack: make folder: %w", err)
	}
	p := &Process{exited: make(chan struct{}), folder: folder, stderr: &tail{}}
	readyFile := filepath.Join(folder, "ready.json")
	p.command = exec.Command(binary, append(args, "--ready-file", readyFile, "--until-stdin-closes")...)
	p.command.Stderr = p.stderr
	p.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if p.lifeline, err = p.command.StdinPipe(); err != nil {
		return nil, errors.Join(fmt.Errorf("burrow-devstack: make pipe: %w", err), os.RemoveAll(folder))
	}
	if err := p.command.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("burrow-devstack: start %s: %w", binary, err), os.RemoveAll(folder))
	}
	go func() {
		defer close(p.exited)
		_ = p.command.Wait() // how it ended is in its output and ProcessState
	}()
	if err := p.awaitReport(ctx, readyFile); err != nil {
		return nil, errors.Join(err, p.Kill())
	}
	return p, nil
}

// awaitReport waits until the report is there or the process has ended.
func (p *Process) awaitReport(ctx context.Context, file string) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	ticker := time.NewTicker(readinessProbe)
	defer ticker.Stop()
	for {
		text, err := os.ReadFile(file)
		if err == nil {
			return json.Unmarshal(text, &p.Report)
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("burrow-devstack: read report: %w", err)
		}
		select {
		case <-p.exited:
			return fmt.Errorf("burrow-devstack %v: ended before it served: %s\n%s", p.command.Args[1:], p.command.ProcessState, p.stderr)
		case <-ctx.Done():
			return fmt.Errorf("burrow-devstack %v: not ready: %w\n%s", p.command.Args[1:], ctx.Err(), p.stderr)
		case <-ticker.C:
		}
	}
}

// Stop asks the process to end in order and waits; after 25 s it is killed and
// Stop says so. Stopping twice is success.
func (p *Process) Stop() error {
	if err := p.command.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("burrow-devstack %d: signal: %w", p.command.Process.Pid, err)
	}
	timer := time.NewTimer(stopLimit)
	defer timer.Stop()
	select {
	case <-p.exited:
		return p.release()
	case <-timer.C:
		return errors.Join(fmt.Errorf("burrow-devstack %d: still there %s after SIGTERM\n%s", p.command.Process.Pid, stopLimit, p.stderr), p.Kill())
	}
}

// Kill ends the process as a crash would and waits until it is gone.
func (p *Process) Kill() error {
	if err := p.command.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("burrow-devstack %d: kill: %w", p.command.Process.Pid, err)
	}
	<-p.exited
	return p.release()
}

// Exited is closed when the process has ended.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Output is the end of what the process wrote to standard error.
func (p *Process) Output() string { return p.stderr.String() }

// release gives back the pipe and the folder.
func (p *Process) release() error {
	_ = p.lifeline.Close() // Wait has closed it already when the process is gone
	return os.RemoveAll(p.folder)
}

// tail keeps the last bytes written to it.
type tail struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// tailBytes is enough for the error that ended a process.
const tailBytes = 16 << 10

// Write keeps p and drops the oldest bytes.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text.Write(p)
	if extra := t.text.Len() - tailBytes; extra > 0 {
		t.text.Next(extra)
	}
	return len(p), nil
}

// String gives what is kept.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.String()
}
