package cli

import (
	"fmt"
	"time"

	ucli "github.com/urfave/cli/v2"

	"burrow.dev/burrow/cli/render"
	"burrow.dev/burrow/internal/imagestore/catalogue"
	"burrow.dev/burrow/manifest"
)

// imageCommand groups what concerns images.
func imageCommand() *ucli.Command {
	return &ucli.Command{
		Name: "image", Category: categoryResources, Usage: "list, import, build and delete images",
		Subcommands: []*ucli.Command{
			imageListCommand(),
			imageImportCommand(),
			imageBuildCommand(),
			imageDeleteCommand(),
		},
	}
}

// imageListCommand lists the images in the library, and those of the catalogue that can be had.
func imageListCommand() *ucli.Command {
	return &ucli.Command{
		Name: "list", Aliases: []string{"ls"}, Usage: "list the images there are, and those of the catalogue",
		Flags: []ucli.Flag{outputFlag("table", "wide", "json", "yaml", "name")},
		Action: func(c *ucli.Context) error {
			gw, err := openGateway(c)
			if err != nil {
				return err
			}
			defer func() { _ = gw.Close() }()
			q := query{kinds: []manifest.Kind{manifest.KindImage}}
			records, err := q.fetch(c, gw)
			if err != nil {
				return err
			}
			if output(c) != "table" && output(c) != "wide" {
				return printRecords(c, q, records)
			}
			return imageTables(c, q, records)
		},
	}
}

func imageTables(c *ucli.Context, q query, records []manifest.Record) error {
	w := c.App.Writer
	there := map[string]bool{}
	for _, rec := range records {
		there[rec.Metadata.Name] = true
	}
	if err := printTables(w, q, records, output(c) == "wide", time.Now()); err != nil {
		return err
	}
	var rows [][]string
	for _, e := range catalogue.Entries() {
		if !there[e.Name] {
			tried := "yes"
			if !e.Tried {
				tried = "not yet"
			}
			rows = append(rows, []string{e.Name, e.OSName + " " + e.OSVersion, e.User, tried, e.URL})
		}
	}
	if len(rows) == 0 {
		return nil
	}
	if len(records) > 0 {
		fmt.Fprintln(w)
	}
	fmt.Fprintln(w, "In the catalogue, downloaded when first used:")
	return render.Table(w, []string{"NAME", "OS", "LOGIN", "TRIED", "SOURCE"}, rows)
}
