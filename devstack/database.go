package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"path/filepath"

	"burrow.dev/devstack/internal/temporalnode"
)

// runDatabase runs the commands that work on Temporal's database and serve nothing.
func runDatabase(ctx context.Context, args []string, stderr io.Writer) error {
	command := ""
	if len(args) > 0 {
		command = args[0]
	}
	flags := flag.NewFlagSet("database "+command, flag.ContinueOnError)
	flags.SetOutput(stderr)
	file := flags.String("file", "", "the database `FILE`; required")
	var dir *string
	switch command {
	case "snapshot":
		dir = flags.String("data-dir", "", "`DIR` of serve, whose server may run; required")
	case "check":
	default:
		return &usageError{fmt.Errorf("unknown command %q; known: database snapshot, database check", "database "+command)}
	}
	if err := flags.Parse(args[1:]); err != nil {
		return &usageError{err}
	}
	if flags.NArg() > 0 || *file == "" || (dir != nil && *dir == "") {
		return &usageError{errors.New("database " + command + ": want its flags, and nothing else: see -h")}
	}
	if dir == nil {
		return temporalnode.CheckDatabase(ctx, *file)
	}
	return temporalnode.Snapshot(ctx, filepath.Join(*dir, "temporal"), *file)
}

// usageError is a command line that asks for nothing there is.
type usageError struct{ error }

// Unwrap gives what is wrong.
func (e *usageError) Unwrap() error { return e.error }
