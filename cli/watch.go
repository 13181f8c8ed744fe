package cli

import (
	"context"
	"errors"
	"fmt"

	ucli "github.com/urfave/cli/v2"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"burrow.dev/burrow/cli/follow"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/workflows"
)

// watchCommand follows operations that somebody started.
func watchCommand() *ucli.Command {
	return &ucli.Command{
		Name:      "watch",
		Category:  categoryOperations,
		Usage:     "follow the operation of a resource",
		ArgsUsage: "KIND NAME | KIND/NAME ...",
		Flags:     []ucli.Flag{outputFlag("table", "json")},
		Action: func(c *ucli.Context) error {
			refs, err := resourceArgs(c, 0)
			if err != nil {
				return err
			}
			return operateAll(c, refs, func(tc client.Client, ref Ref) ([]follow.Target, error) {
				return watchable(c.Context, tc, ref)
			})
		},
	}
}

// watchable are the latest operation of a resource, and what waits for the resource.
func watchable(ctx context.Context, tc client.Client, ref Ref) ([]follow.Target, error) {
	d, err := tc.DescribeWorkflow(ctx, ref.String(), "")
	var unknown *serviceerror.NotFound
	if err != nil && !errors.As(err, &unknown) {
		return nil, errs.NewTransient(ref.String(), "watch", err)
	}
	if err != nil {
		return nil, errs.New(errs.Permanent, ref.String(), "watch", fmt.Errorf("%w: no operation is on record", errs.ErrNotFound),
			"`burrow get` lists what there is")
	}
	targets := []follow.Target{{ID: ref.String(), RunID: d.WorkflowExecution.RunID}}
	waits, open, err := openRun(ctx, tc, workflows.NextID(ref.String()))
	if open {
		targets = append(targets, waits.Target)
	}
	return targets, err
}
