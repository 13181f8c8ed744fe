package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"burrow.dev/burrow/cli/render"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
)

// Exit codes. They are part of the interface.
const (
	ExitOK      = 0   // ready, or nothing to do
	ExitOther   = 1   // wrong usage, nobody there, anything else
	ExitInvalid = 2   // a manifest is invalid
	ExitDiffers = 3   // drift: something differs; configure --check: something would change
	ExitBusy    = 4   // the resource is busy with another operation
	ExitFailed  = 5   // the operation failed; nothing of it is left
	ExitHeld    = 6   // the operation waits for a person
	ExitStopped = 130 // stopped following; the operation goes on
)

// ExitError ends the command with a code of its own. Err nil prints nothing: the command
// has said all there is to say.
type ExitError struct {
	Code int
	Err  error
}

// Error gives the cause, or names the code.
func (e *ExitError) Error() string {
	if e.Err == nil {
		return "exit code " + strconv.Itoa(e.Code)
	}
	return e.Err.Error()
}

// Unwrap gives the cause.
func (e *ExitError) Unwrap() error { return e.Err }

// report is the one place that prints an error and decides the exit code.
func report(w io.Writer, err error) int {
	if err == nil {
		return ExitOK
	}
	code := codeOf(err)
	var several severalErrors
	if errors.As(err, &several) {
		for _, one := range several {
			report(w, one)
		}
		return code
	}
	var exit *ExitError
	if errors.As(err, &exit) && exit.Err == nil {
		return code
	}
	if code == ExitStopped {
		return code // Ctrl-C needs no message of an error; who followed something has said more
	}
	var problems manifest.Problems
	if errors.As(err, &problems) {
		printProblems(w, problems)
		return code
	}
	text, next := words(err)
	if code == ExitDiffers {
		fmt.Fprintln(w, render.CleanLines(text)) // what was asked for, and no error
		return code
	}
	fmt.Fprintf(w, "error: %s\n", render.CleanLines(text))
	if next != "" {
		fmt.Fprintf(w, "  next: %s\n", render.CleanLines(next))
	}
	return code
}

func codeOf(err error) int {
	var exit *ExitError
	var problems manifest.Problems
	var several severalErrors
	switch {
	case errors.As(err, &several):
		return several.code()
	case errors.As(err, &exit):
		return exit.Code
	case errors.As(err, &problems):
		return ExitInvalid
	case errors.Is(err, errs.ErrBusy):
		return ExitBusy
	case errors.Is(err, context.Canceled):
		return ExitStopped
	}
	return ExitOther
}

// words takes the next step out of an error's text, when its outermost part has one.
func words(err error) (text, next string) {
	text = err.Error()
	var usage *usageError
	if errors.As(err, &usage) {
		return text, usage.command + " --help"
	}
	var own *errs.Error
	if errors.As(err, &own) && own.Next != "" {
		if rest, ok := strings.CutSuffix(text, "; "+own.Next); ok {
			return rest, own.Next
		}
	}
	return text, ""
}

func printProblems(w io.Writer, problems manifest.Problems) {
	for _, p := range problems {
		fmt.Fprintln(w, render.CleanLines(strings.TrimRight(p.Text(), "\n")))
	}
	if n := len(problems); n == 1 {
		fmt.Fprintln(w, "error: 1 problem; nothing was touched")
	} else {
		fmt.Fprintf(w, "error: %d problems; nothing was touched\n", n)
	}
}

// usageErrorf is wrong usage of a command: code 1, and where to read how it is used.
func usageErrorf(c *ucli.Context, format string, args ...any) error {
	return &usageError{command: strings.TrimSpace("burrow " + commandPath(c)), err: fmt.Errorf(format, args...)}
}

// usageError is a command that was used wrongly.
type usageError struct {
	command string
	err     error
}

// Error names the command and what is wrong.
func (e *usageError) Error() string { return e.command + ": " + e.err.Error() }

// Unwrap gives what is wrong.
func (e *usageError) Unwrap() error { return e.err }

// usageProblem replaces urfave's: an unknown flag, a value that is none.
func usageProblem(c *ucli.Context, err error, _ bool) error {
	name, unknown := strings.CutPrefix(err.Error(), "flag provided but not defined: -")
	if !unknown {
		return usageErrorf(c, "%w", err)
	}
	var names []string
	if c.Command != nil {
		names = flagWords(c.Command.Flags)
	}
	return usageErrorf(c, "there is no flag %s%s", typedFlag(c, name), didYouMean("--"+name, names))
}

// commandPath names the command as it is typed, without the program: "image list".
func commandPath(c *ucli.Context) string {
	var names []string
	for _, at := range c.Lineage() {
		if at.Command != nil && at.Command.Name != "" && at.Command.Name != c.App.Name && at.Command.Name != "burrow" {
			names = append([]string{at.Command.Name}, names...)
		}
	}
	return strings.Join(names, " ")
}
