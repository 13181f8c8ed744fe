package ovsx

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"burrow.dev/burrow/internal/errs"
)

// Deadline bounds one call to Open vSwitch: ovs-vsctl returns when ovs-vswitchd has
// applied a change, which takes seconds on a host that starts many guests at once.
const Deadline = 15 * time.Second

// pollInterval is the pace of waiting for a port or bridge to come up: such waits end
// within milliseconds.
const pollInterval = 10 * time.Millisecond

// Client talks to the Open vSwitch of this host. Safe for use by several goroutines.
type Client struct{}

// New makes a client. It does not connect: a missing Open vSwitch is the first call's error.
func New() *Client { return &Client{} }

// run executes one of Open vSwitch's programs with a deadline.
func run(ctx context.Context, stdin io.Reader, name string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, Deadline)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	// A killed program's children may hold the pipes open.
	cmd.WaitDelay = time.Second
	cmd.Stdin = stdin
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	err := cmd.Run()
	switch {
	case err == nil:
		return out.Bytes(), nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	default:
		return nil, &commandError{err: err, said: strings.TrimSpace(said.String())}
	}
}

// commandError is a program that failed and what it said.
type commandError struct {
	err  error
	said string
}

func (e *commandError) Error() string {
	if e.said == "" {
		return e.err.Error()
	}
	return fmt.Sprintf("%s (%v)", e.said, e.err)
}

func (e *commandError) Unwrap() error { return e.err }

// vsctl runs one read-only ovs-vsctl and gives its output.
func (c *Client) vsctl(ctx context.Context, args ...string) ([]byte, error) {
	return run(ctx, nil, "ovs-vsctl", append([]string{timeoutFlag(), "--format=json"}, args...)...)
}

func timeoutFlag() string { return "--timeout=" + strconv.Itoa(int(Deadline/time.Second)) }

// next steps that only a person can take.
const (
	nextInstall = "install Open vSwitch (package openvswitch-switch) on this host"
	nextStart   = "start Open vSwitch on this host (systemctl start openvswitch-switch)"
)

// translate classifies what Open vSwitch's programs say, once.
func translate(object, action string, err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return errs.New(errs.Operator, object, action, err, nextInstall)
	case errors.Is(err, context.Canceled):
		return errs.NewTransient(object, action, err)
	case errors.Is(err, context.DeadlineExceeded), strings.Contains(text, "database connection failed"),
		strings.Contains(text, "signal: alarm clock"), strings.Contains(text, "failed to connect to socket"):
		return errs.New(errs.Transient, object, action, errors.Join(errs.ErrUnavailable, err), nextStart)
	case strings.Contains(text, "no bridge named"), strings.Contains(text, "no port named"),
		strings.Contains(text, "is not a bridge or a socket"), strings.Contains(text, "no row"):
		return errs.New(errs.Transient, object, action, fmt.Errorf("%w: %w", errs.ErrNotFound, err), "")
	default:
		return errs.NewTransient(object, action, err)
	}
}
