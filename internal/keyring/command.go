package keyring

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os/exec"
	"syscall"
	"time"

	"burrow.dev/burrow/internal/errs"
)

const (
	// commandTimeout bounds a command that gives the keys: it asks a KMS over a network.
	commandTimeout = 15 * time.Second
	// commandWait is what it has to end once it is killed.
	commandWait = time.Second
	// commandLookEvery spares the KMS while a key is missing.
	commandLookEvery = 20 * time.Second
	// commandMost bounds its output; it is a few keys.
	commandMost = 4 << 10
)

// command is a program that prints the keys. What it prints goes nowhere else: neither its
// output nor its messages are shown or logged.
type command struct {
	argv    []string
	timeout time.Duration
}

func (c command) lookEvery() time.Duration { return commandLookEvery }

func (c command) place(string) string { return "the output of masterKeyCommand (" + c.argv[0] + ")" }

func (c command) object() string { return "masterKeyCommand " + c.argv[0] }

// next is what a person can do about a command that does not give keys.
func (c command) next() string {
	return "run it by hand as root: it has to print 32 bytes, or a line of 64 hex digits for each key"
}

func (c command) load(ctx context.Context) ([][]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, c.argv[0], c.argv[1:]...)
	out := &capped{most: commandMost}
	cmd.Stdout = out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = commandWait
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return nil, errs.NewTransient(c.object(), "get master key", errs.Reason("%w: it took longer than %s", errs.ErrUnavailable, c.timeout))
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.As(err, &exit):
		return nil, errs.NewOperator(c.object(), "get master key", errs.Reason("it ended with %s", exit.ProcessState), c.next())
	case err != nil:
		return nil, errs.NewOperator(c.object(), "get master key", err, "check masterKeyCommand in worker.json")
	}
	keys, err := parseKeys(out.Bytes())
	if err != nil {
		return nil, errs.NewOperator(c.object(), "get master key", err, c.next())
	}
	return keys, nil
}

func (c command) make() ([]byte, string, error) {
	return nil, "", errs.NewOperator(c.object(), "make a new master key", errs.Reason("it gives no key that is not in use already"),
		"let it print the new key too, a line of 64 hex digits for each, on every machine")
}

// parseKeys reads 32 bytes, or lines of 64 hex digits. Its errors quote nothing.
func parseKeys(out []byte) ([][]byte, error) {
	if len(out) == KeySize {
		return [][]byte{bytes.Clone(out)}, nil
	}
	var keys [][]byte
	for _, line := range bytes.Fields(out) {
		key := make([]byte, hex.DecodedLen(len(line)))
		if len(line) != hex.EncodedLen(KeySize) {
			return nil, fmt.Errorf("its output is not a key: %d bytes in all", len(out))
		}
		if _, err := hex.Decode(key, line); err != nil {
			return nil, errors.New("its output is not a key: other characters than hex digits")
		}
		keys = append(keys, key)
	}
	if len(keys) == 0 {
		return nil, errors.New("it prints nothing")
	}
	return keys, nil
}

// capped keeps the beginning of an output, and takes the rest without keeping it.
type capped struct {
	bytes.Buffer
	most int
}

// Write implements io.Writer.
func (c *capped) Write(p []byte) (int, error) {
	if room := c.most - c.Len(); room > 0 {
		_, _ = c.Buffer.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}
