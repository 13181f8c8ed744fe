package cli

import (
	"bytes"

	ucli "github.com/urfave/cli/v2"

	"burrow.dev/burrow/manifest"
)

// schemaCommand prints JSON Schema for editors.
func schemaCommand() *ucli.Command {
	return &ucli.Command{
		Name: "schema", Category: categoryResources, Usage: "print the JSON Schema of a kind, for editors", ArgsUsage: "KIND",
		Action: func(c *ucli.Context) error {
			if c.NArg() != 1 {
				return usageErrorf(c, "name one kind")
			}
			kind, err := manifest.ParseKind(c.Args().First())
			if err != nil {
				return usageErrorf(c, "%w", err)
			}
			schema, err := manifest.Schema(kind)
			if err != nil {
				return err
			}
			_, err = c.App.Writer.Write(append(bytes.TrimRight(schema, "\n"), '\n'))
			return err
		},
	}
}
