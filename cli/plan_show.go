package cli

import (
	"encoding/json"
	"fmt"
	"io"

	ucli "github.com/urfave/cli/v2"

	"burrow.dev/burrow/cli/render"
	"burrow.dev/burrow/internal/plaintext"
)

// print says what stands as declared, and what becomes of each field of a server that is
// changed.
func (p *plan) print(w io.Writer) {
	for _, ref := range p.unchanged {
		fmt.Fprintf(w, "%s is as declared\n", ref)
	}
	for _, s := range p.changes {
		for _, e := range s.Effects {
			fmt.Fprintf(w, "%s: %s: %s\n", s.Ref, render.Clean(e.Field), render.Clean(e.Text))
		}
	}
}

// show prints the whole plan, for people or as JSON: a dry run.
func (p *plan) show(c *ucli.Context) error {
	build := []string{}
	for _, d := range p.documents {
		if d.Update == nil {
			build = append(build, d.Ref)
		}
	}
	if output(c) == "json" {
		return json.NewEncoder(plaintext.JSONWriter(c.App.Writer)).Encode(map[string]any{
			"build": build, "change": append([]serverChange{}, p.changes...), "unchanged": append([]string{}, p.unchanged...),
		})
	}
	p.print(c.App.Writer)
	for _, ref := range build {
		fmt.Fprintf(c.App.Writer, "%s would be built\n", ref)
	}
	return nil
}
