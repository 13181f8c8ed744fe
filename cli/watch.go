package cli

import (
	"errors"
	"fmt"

	ucli "github.com/urfave/cli/v2"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"burrow.dev/burrow/cli/follow"
	"burrow.dev/burrow/internal/errs"
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
			return operate(c, refs, func(tc client.Client, ref Ref) (follow.Target, error) {
				d, err := tc.DescribeWorkflow(c.Context, ref.String(), "")
				var unknown *serviceerror.NotFound
				if err != nil && !errors.As(err, &unknown) {
					return follow.Target{}, errs.NewTransient(ref.String(), "watch", err)
				}
				if err != nil {
					return follow.Target{}, errs.New(errs.Permanent, ref.String(), "watch", fmt.Errorf("%w: no operation is on record", errs.ErrNotFound),
						"`burrow get` lists what there is")
				}
				return follow.Target{ID: ref.String(), RunID: d.WorkflowExecution.RunID}, nil
			})
		},
	}
}
