package hostnet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"
)

// commandTimeout bounds one ip, nft or dnsmasq: each takes milliseconds, and seconds on a
// host that is short of everything.
const commandTimeout = 20 * time.Second

// run executes a program with text as its standard input. What it says on standard error
// is the error's text.
func run(ctx context.Context, text, name string, args ...string) error {
	_, err := output(ctx, text, name, args...)
	return err
}

func output(ctx context.Context, text, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.WaitDelay = time.Second
	cmd.Stdin = strings.NewReader(text)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	err := cmd.Run()
	switch {
	case err == nil:
		return out.String(), nil
	case ctx.Err() != nil:
		return "", fmt.Errorf("%s: %w", name, ctx.Err())
	case errors.Is(err, exec.ErrNotFound):
		return "", fmt.Errorf("%w (package %s)", err, packages[name])
	default:
		return "", fmt.Errorf("%s: %s (%w)", name, strings.TrimSpace(said.String()), err)
	}
}

// packages name what to install when a program is missing.
var packages = map[string]string{"ip": "iproute2", "nft": "nftables", "dnsmasq": "dnsmasq-base"}
