package cli

import (
	"fmt"
	"runtime"

	ucli "github.com/urfave/cli/v2"

	"burrow.dev/burrow/internal/buildinfo"
)

func version() string { return buildinfo.Version() }

// versionCommand prints the version of this program.
func versionCommand() *ucli.Command {
	return &ucli.Command{
		Name: "version", Category: categoryMachine, Usage: "print the version of this program",
		Flags: []ucli.Flag{outputFlag("table", "json")},
		Action: func(c *ucli.Context) error {
			if output(c) == "json" {
				return printJSON(c.App.Writer, map[string]string{
					"version": version(), "go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH,
				})
			}
			_, err := fmt.Fprintf(c.App.Writer, "burrow %s (%s, %s/%s)\n", version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}
