package cli

import (
	"fmt"
	"io"

	ucli "github.com/urfave/cli/v2"

	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/gateway"
	"burrow.dev/burrow/internal/plaintext"
)

// logsCommand prints the log of a playbook run.
func logsCommand() *ucli.Command {
	return &ucli.Command{
		Name: "logs", Category: categoryServers, Usage: "print the log of a playbook run", ArgsUsage: "[server] NAME | playbook/NAME",
		Flags: []ucli.Flag{
			&ucli.BoolFlag{Name: "follow", Aliases: []string{"f"}, Usage: "go on until the run has ended"},
			&ucli.StringFlag{Name: "run", Usage: "the run with this `ID`, or the N-th last: 1 is the latest, 2 the one before (default: the latest)"},
			&ucli.BoolFlag{Name: "list", Usage: "list the runs that have a log, latest first; burrow history tells more of each"},
		},
		Action: func(c *ucli.Context) error {
			playbooks := playbookRefs(c)
			name, run := "", c.String("run")
			if len(playbooks) != 1 {
				var err error
				if name, _, err = serverArg(c); err != nil {
					return err
				}
			}
			gw, err := openGateway(c)
			if err != nil {
				return err
			}
			defer func() { _ = gw.Close() }()
			if len(playbooks) == 1 {
				if name, run, err = runOf(c, gw, playbooks[0]); err != nil {
					return err
				}
			}
			if c.Bool("list") {
				return listRuns(c, gw, name)
			}
			out := &cleaning{w: c.App.Writer}
			ctx, stop := whileRead(c.Context, c.App.Writer)
			defer stop()
			err = gw.Logs(ctx, name, run, c.Bool("follow"), out)
			if ctx.Err() != nil {
				return &ExitError{Code: ExitStopped}
			}
			return err
		},
	}
}

func listRuns(c *ucli.Context, gw *gateway.Client, name string) error {
	if c.IsSet("run") || c.IsSet("follow") {
		return usageErrorf(c, "--list goes without --run and --follow")
	}
	runs, err := gw.ListRuns(c.Context, name)
	if err != nil {
		return err
	}
	if len(runs) == 0 {
		return writeLine(c, "no playbook has run on "+name+" yet")
	}
	for _, run := range runs {
		fmt.Fprintln(c.App.Writer, run)
	}
	return nil
}

// runOf is a run of a Playbook, whose log is with each of its servers.
func runOf(c *ucli.Context, gw *gateway.Client, ref Ref) (server, run string, err error) {
	if c.Bool("list") {
		return "", "", usageErrorf(c, "--list takes a server; `burrow history %s` lists a Playbook's runs", ref)
	}
	rec, err := look(c.Context, gw, ref)
	if err != nil {
		return "", "", err
	}
	run = c.String("run")
	servers := targetNames(rec)
	if len(servers) == 0 {
		return "", "", errs.NewPermanent(ref.String(), "find its log", errs.ErrNotFound, "it has not run yet; `burrow watch "+ref.String()+"` follows it")
	}
	if run == "" && rec.Status.Playbook != nil {
		run = rec.Status.Playbook.RunID // its servers may have had runs of their own since
	}
	return servers[0], run, nil
}

// cleaning passes text on without what a terminal would obey.
type cleaning struct {
	w       io.Writer
	cleaner plaintext.Cleaner
}

// Write implements io.Writer.
func (c *cleaning) Write(p []byte) (int, error) {
	if _, err := c.w.Write(c.cleaner.Append(nil, p)); err != nil {
		return 0, err
	}
	return len(p), nil
}
