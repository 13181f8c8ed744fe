package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	ucli "github.com/urfave/cli/v2"

	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/installation"
	"burrow.dev/burrow/internal/supervise"
)

// downLimit is more than all parts may take to stop together.
const downLimit = 2 * time.Minute

// downCommand stops what `burrow up` started.
func downCommand() *ucli.Command {
	return &ucli.Command{
		Name: "down", Category: categoryMachine,
		Usage:       "stop what burrow up started on this machine; servers go on running",
		Description: "Stops the worker, then Temporal and etcd, and returns when they are gone. Operations that\nare open go on after the next `burrow up`.",
		Flags:       []ucli.Flag{dataDirFlag()},
		Action: func(c *ucli.Context) error {
			dir, err := filepath.Abs(c.String("data-dir"))
			if err != nil {
				return errs.NewPermanent("data directory "+c.String("data-dir"), "open", err, "")
			}
			if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
				fmt.Fprintf(c.App.Writer, "nothing runs: there is no %s\n", dir)
				return nil
			}
			ctx, cancel := context.WithTimeout(c.Context, downLimit)
			defer cancel()
			ended, err := supervise.Down(ctx, dir, installation.StopGrace)
			for _, what := range ended {
				fmt.Fprintf(c.App.Writer, "stopped %s\n", what)
			}
			if err != nil {
				return err
			}
			if len(ended) == 0 {
				fmt.Fprintln(c.App.Writer, "nothing runs")
			}
			return installation.Folder(dir).RemoveLeftovers()
		},
	}
}
