package tool

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"
)

const (
	// killDelay is how long a killed program may take to let go of its pipes before Run
	// returns without them; a namespace of processes is gone well within it.
	killDelay = 5 * time.Second

	tailBytes  = 16 << 10 // of a program's last output is searched for the cause
	shownBytes = 700      // of it is shown in the error
)

// Command is one run of a program.
type Command struct {
	Name string
	Args []string
	// Env is added to a plain environment: PATH, locale, and the caller's proxies.
	Env   []string
	Stdin io.Reader
	// Stdout gets what the program prints; nil: it counts as a message, like standard error.
	Stdout io.Writer
	// Log gets the messages as well; may be nil.
	Log io.Writer
}

// Runner runs a program; Run is one.
type Runner func(ctx context.Context, c Command) error

// Run runs a program and waits for it. It is killed with its children when ctx ends (the
// error is ctx's cause) and when this process dies. A program that is not installed gives
// exec.ErrNotFound, one that fails an *Error.
func Run(ctx context.Context, c Command) error {
	// PR_SET_PDEATHSIG is about the thread that forks: it must outlive the child.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var messages tail
	var out io.Writer = &messages
	if c.Log != nil {
		out = io.MultiWriter(&messages, c.Log)
	}
	cmd := exec.CommandContext(ctx, c.Name, c.Args...)
	cmd.Env = append(plainEnv(), c.Env...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = c.Stdin, c.Stdout, out
	if c.Stdout == nil {
		cmd.Stdout = out
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = killDelay
	err := cmd.Run()
	switch {
	case err != nil && ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil && cmd.Process == nil:
		return fmt.Errorf("%s: %w", c.Name, err)
	case err != nil:
		return &Error{Program: c.Name, Err: err, Output: messages.String()}
	}
	return nil
}

func plainEnv() []string {
	env := []string{
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"LC_ALL=C.UTF-8", "DEBIAN_FRONTEND=noninteractive", "HOME=/root",
	}
	for _, k := range []string{"http_proxy", "https_proxy", "no_proxy"} {
		if v := os.Getenv(k); v != "" {
			env = append(env, k+"="+v)
		}
	}
	return env
}

// Error is a program that failed, with the end of what it said.
type Error struct {
	Program string
	Err     error
	Output  string
}

// Error gives the program, its exit status and its last lines in one line.
func (e *Error) Error() string {
	shown := e.Output[max(0, len(e.Output)-shownBytes):]
	text := strings.Join(strings.FieldsFunc(shown, func(r rune) bool { return r == '\n' || r == '\r' }), " | ")
	return fmt.Sprintf("%s: %v: %s", e.Program, e.Err, strings.ToValidUTF8(text, "?"))
}

// Unwrap gives the exit error.
func (e *Error) Unwrap() error { return e.Err }

// ExitCode is the exit status of the program that failed; -1 when err is something else.
func ExitCode(err error) int {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode()
	}
	return -1
}

// Said reports whether err is a program that printed one of the texts.
func Said(err error, texts ...string) bool {
	var e *Error
	if !errors.As(err, &e) {
		return false
	}
	for _, t := range texts {
		if strings.Contains(e.Output, t) {
			return true
		}
	}
	return false
}

// tail keeps the end of what is written to it.
type tail struct{ b []byte }

func (t *tail) Write(p []byte) (int, error) {
	t.b = append(t.b, p...)
	if extra := len(t.b) - tailBytes; extra > 0 {
		t.b = append(t.b[:0], t.b[extra:]...)
	}
	return len(p), nil
}

func (t *tail) String() string { return string(bytes.TrimSpace(t.b)) }
