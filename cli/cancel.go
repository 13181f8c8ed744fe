package cli

import (
	"context"
	"errors"
	"fmt"

	ucli "github.com/urfave/cli/v2"
	"go.temporal.io/sdk/client"

	"burrow.dev/burrow/cli/follow"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/workflows"
)

// cancelCommand stops operations and follows their undo.
func cancelCommand() *ucli.Command {
	return &ucli.Command{
		Name:      "cancel",
		Category:  categoryOperations,
		Usage:     "stop the operation of a resource and undo what it made",
		ArgsUsage: "KIND NAME | KIND/NAME ...",
		Description: "Exit code 0 only when everything is undone, else 5. A delete goes on to its end. What waits for the\n" +
			"resource (--queue) then starts; --queued takes that out, and leaves the open operation alone.",
		Flags: []ucli.Flag{
			&ucli.BoolFlag{Name: "queued", Usage: "take out what waits for the resource, instead of what runs on it"},
			leaveFlag(), outputFlag("table", "json"),
		},
		Action: func(c *ucli.Context) error {
			refs, err := resourceArgs(c, 0)
			if err != nil {
				return err
			}
			return cancelled(c, operate(c, refs, func(tc client.Client, ref Ref) (follow.Target, error) {
				id, none := ref.String(), "nothing is running on it"
				if c.Bool("queued") {
					id, none = workflows.NextID(id), "nothing waits for it"
				}
				run, open, err := openRun(c.Context, tc, id)
				if err != nil {
					return run.Target, err
				}
				if !open {
					if err := refuseIfUnknown(c, tc, ref); err != nil {
						return run.Target, err
					}
					return run.Target, errs.New(errs.Permanent, ref.String(), "cancel", errs.Reason("%s", none), "`burrow get` shows how it stands")
				}
				if workflows.IsDelete(run.kind) {
					return run.Target, errs.New(errs.Permanent, ref.String(), "cancel", errs.Reason("it is being deleted, and a delete goes on to its end"), "`burrow watch "+ref.String()+"` follows it")
				}
				return run.Target, cancelRun(c.Context, tc, ref, run)
			}))
		},
	}
}

func cancelRun(ctx context.Context, tc client.Client, ref Ref, run running) error {
	if err := tc.CancelWorkflow(ctx, run.ID, run.RunID); err != nil {
		return errs.NewTransient(ref.String(), "cancel", err)
	}
	return nil
}

// leaveFlag is detachFlag of commands that act on an operation there is already, or end one.
func leaveFlag() ucli.Flag {
	return &ucli.BoolFlag{Name: "detach", Usage: "return at once; burrow watch follows what comes of it"}
}

// cancelled takes the end that was asked for as success. An undo that left something is
// none, and neither is a resource that was refused beside it.
func cancelled(c *ucli.Context, err error) error {
	var several severalErrors
	if errors.As(err, &several) {
		var left []error
		for _, one := range several {
			left = append(left, cancelled(c, one))
		}
		return together(left...)
	}
	var given *givenUpError
	if errors.As(err, &given) {
		fmt.Fprintln(c.App.Writer, given.Err)
		return nil
	}
	return err
}

// givenUpError is the end of operations that failed only as cancelled or aborted ones do:
// what they had made is undone.
type givenUpError struct{ *ExitError }

// Unwrap gives the exit code.
func (e *givenUpError) Unwrap() error { return e.ExitError }
