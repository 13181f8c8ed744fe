package cli

import (
	"io"

	ucli "github.com/urfave/cli/v2"

	"burrow.dev/burrow/internal/plaintext"
)

// logsCommand prints the log of a playbook run.
func logsCommand() *ucli.Command {
	return &ucli.Command{
		Name: "logs", Category: categoryServers, Usage: "print the log of a server's playbook run", ArgsUsage: "[server] NAME",
		Flags: []ucli.Flag{
			&ucli.BoolFlag{Name: "follow", Aliases: []string{"f"}, Usage: "go on until the run has ended"},
			&ucli.StringFlag{Name: "run", Usage: "the run with this `ID` (default: the latest)"},
		},
		Action: func(c *ucli.Context) error {
			name, _, err := serverArg(c)
			if err != nil {
				return err
			}
			gw, err := openGateway(c)
			if err != nil {
				return err
			}
			defer func() { _ = gw.Close() }()
			out := &cleaning{w: c.App.Writer}
			err = gw.Logs(c.Context, name, c.String("run"), c.Bool("follow"), out)
			if c.Context.Err() != nil {
				return &ExitError{Code: ExitStopped}
			}
			return err
		},
	}
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
