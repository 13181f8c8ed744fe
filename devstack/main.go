package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"burrow.dev/devstack/internal/ports"
)

// Exit codes: what started this process decides with them whether to try again.
const (
	exitFailed = 1
	exitUsage  = 2
	// exitPortTaken is an operator's matter: starting again changes nothing.
	exitPortTaken = 3
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run executes one command line and gives its exit code.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	if len(args) > 0 && args[0] == "database" {
		return database(ctx, args[1:], stderr)
	}
	options, err := parse(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintf(stderr, "burrow-devstack: %v\n", err)
		return exitUsage
	}
	if options.untilStdinCloses {
		var cancel context.CancelFunc
		ctx, cancel = untilClosed(ctx, stdin)
		defer cancel()
	}
	err = serve(ctx, options, stdout)
	switch {
	case errors.Is(err, ports.ErrTaken):
		fmt.Fprintf(stderr, "burrow-devstack: %v\n", err)
		return exitPortTaken
	case err != nil:
		fmt.Fprintf(stderr, "burrow-devstack: %v\n", err)
		return exitFailed
	}
	return 0
}

// database executes one of the commands that serve nothing.
func database(ctx context.Context, args []string, stderr io.Writer) int {
	err := runDatabase(ctx, args, stderr)
	var usage *usageError
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return 0
	case errors.As(err, &usage):
		fmt.Fprintf(stderr, "burrow-devstack: %v\n", err)
		return exitUsage
	}
	fmt.Fprintf(stderr, "burrow-devstack: %v\n", err)
	return exitFailed
}

// untilClosed ends the context when the reader ends, which is when whoever holds the
// other end of the pipe is gone, however it went.
func untilClosed(ctx context.Context, pipe io.Reader) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer cancel()
		_, _ = io.Copy(io.Discard, pipe) // an error is an end too
	}()
	return ctx, cancel
}
