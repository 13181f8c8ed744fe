package cli

import (
	"fmt"

	ucli "github.com/urfave/cli/v2"

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
			tc, err := openTemporal(c)
			if err != nil {
				return err
			}
			defer tc.Close()
			var targets []follow.Target
			for _, ref := range refs {
				d, err := tc.DescribeWorkflow(c.Context, ref.String(), "")
				if err != nil {
					return errs.New(errs.Permanent, ref.String(), "watch", fmt.Errorf("%w: no operation is on record", errs.ErrNotFound),
						"`burrow get` lists what there is")
				}
				targets = append(targets, follow.Target{ID: ref.String(), RunID: d.WorkflowExecution.RunID})
			}
			return followed(c, tc, targets...)
		},
	}
}
