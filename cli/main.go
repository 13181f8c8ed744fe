package cli

import (
	"context"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	ucli "github.com/urfave/cli/v2"

	"burrow.dev/burrow/internal/config"
)

// Main runs the command in args (the program's name first) on the process's streams and
// gives its exit code. The first SIGINT or SIGTERM cancels the command's context, the
// second ends the process.
func Main(ctx context.Context, args []string) int {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	return run(ctx, args, os.Stdin, os.Stdout, os.Stderr)
}

// run is Main on any streams.
func run(ctx context.Context, args []string, in io.Reader, out, errOut io.Writer) int {
	app := newApp()
	app.Reader, app.Writer, app.ErrWriter = in, out, errOut
	app.Metadata = map[string]any{typedWords: args}
	return report(errOut, app.RunContext(ctx, arrange(app, args)))
}

func newApp() *ucli.App {
	app := &ucli.App{
		Name:                 "burrow",
		Usage:                "build servers on KVM hosts, and finish them with Ansible",
		UsageText:            "burrow COMMAND [arguments] [flags]     flags may stand anywhere; after -- everything is an argument",
		Version:              version(),
		EnableBashCompletion: true,
		Flags: []ucli.Flag{
			&ucli.StringFlag{
				Name: "config", EnvVars: []string{"BURROW_CONFIG"}, Value: config.DefaultDataDir + "/" + config.ClientFile,
				Usage: "`FILE` that says where Temporal and the gateway are", TakesFile: true,
			},
		},
		Commands: commands(),
		// Errors are printed and turned into exit codes by report, once.
		ExitErrHandler: func(*ucli.Context, error) {},
		OnUsageError:   usageProblem,
	}
	app.Action = rootAction
	for _, c := range app.Commands {
		finish(c)
	}
	return app
}

// rootAction runs when no command was named, or one that there is not.
func rootAction(c *ucli.Context) error {
	if c.NArg() == 0 {
		return ucli.ShowAppHelp(c)
	}
	name := c.Args().First()
	return usageErrorf(c, "%q is no command%s", name, didYouMean(name, commandNames(c.App.Commands)))
}

// finish gives a command, and those below it, what all have in common.
func finish(c *ucli.Command) {
	c.OnUsageError = usageProblem
	for _, f := range c.Flags {
		if b, ok := f.(*ucli.BoolFlag); ok { // urfave/cli takes what is in backticks for its value's name
			b.Usage = strings.ReplaceAll(b.Usage, "`", "")
		}
	}
	c.HideHelpCommand = len(c.Subcommands) == 0 // a server may be called "help"
	for _, sub := range c.Subcommands {
		finish(sub)
	}
	if do := c.Action; do != nil && c.ArgsUsage == "" {
		c.Action = func(ctx *ucli.Context) error {
			if ctx.NArg() > 0 {
				return usageErrorf(ctx, "it takes no arguments, and %q is one", ctx.Args().First())
			}
			return do(ctx)
		}
	}
	if c.Action == nil && len(c.Subcommands) > 0 {
		c.Action = func(ctx *ucli.Context) error {
			if ctx.NArg() == 0 {
				return ucli.ShowSubcommandHelp(ctx)
			}
			name := ctx.Args().First()
			return usageErrorf(ctx, "%q is no command of %s%s", name, c.Name, didYouMean(name, commandNames(c.Subcommands)))
		}
	}
}
