package build

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

// killDelay is how long a killed tool may take to let go of its pipes before Wait
// returns without them; a namespace of processes is gone well within it.
const killDelay = 5 * time.Second

const (
	tailBytes  = 16 << 10 // of a tool's last output is searched for the cause
	shownBytes = 700      // of it is shown in the error; the log file has the rest
)

// command is one run of a host tool.
type command struct {
	name  string
	args  []string
	env   []string // added to the plain environment
	stdin string
}

// runner runs a tool to its end. A test gives its own.
type runner func(ctx context.Context, c command) error

// hostRunner runs tools of the host; all they print goes to log. A tool and its children
// die with ctx and with this process.
func hostRunner(log io.Writer) runner {
	return func(ctx context.Context, c command) error {
		// PR_SET_PDEATHSIG is about the thread that forked: it must outlive the child.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		var last tail
		cmd := exec.CommandContext(ctx, c.name, c.args...)
		cmd.Env = append([]string{
			"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C.UTF-8", "DEBIAN_FRONTEND=noninteractive", "HOME=/root",
		}, append(proxyEnv(), c.env...)...)
		cmd.Stdin = strings.NewReader(c.stdin)
		out := io.MultiWriter(log, &last)
		cmd.Stdout, cmd.Stderr = out, out
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
		cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
		cmd.WaitDelay = killDelay
		err := cmd.Run()
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			return &toolError{tool: c.name, err: err, output: last.String()}
		}
		return nil
	}
}

// proxyEnv is the caller's proxy settings: apt's way out at many sites.
func proxyEnv() []string {
	var env []string
	for _, k := range []string{"http_proxy", "https_proxy", "no_proxy"} {
		if v := os.Getenv(k); v != "" {
			env = append(env, k+"="+v)
		}
	}
	return env
}

// toolError is a tool that failed, with the end of what it said.
type toolError struct {
	tool   string
	err    error
	output string
}

// Error gives the tool, its exit status and its last lines in one line.
func (e *toolError) Error() string {
	shown := e.output[max(0, len(e.output)-shownBytes):]
	text := strings.Join(strings.FieldsFunc(shown, func(r rune) bool { return r == '\n' || r == '\r' }), " | ")
	return fmt.Sprintf("%s: %v: %s", e.tool, e.err, text)
}

// Unwrap gives the exit error.
func (e *toolError) Unwrap() error { return e.err }

// said reports whether err is a tool that printed one of the texts.
func said(err error, texts ...string) bool {
	var e *toolError
	if !errors.As(err, &e) {
		return false
	}
	for _, t := range texts {
		if strings.Contains(e.output, t) {
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
		t.b = t.b[extra:]
	}
	return len(p), nil
}

// String gives whole lines only.
func (t *tail) String() string {
	b := t.b
	if len(b) == tailBytes {
		if i := bytes.IndexByte(b, '\n'); i >= 0 {
			b = b[i+1:]
		}
	}
	return strings.TrimSpace(string(b))
}
