package cli

import (
	"errors"
	"fmt"

	ucli "github.com/urfave/cli/v2"

	"burrow.dev/burrow/cli/render"
	"burrow.dev/burrow/internal/gateway"
	"burrow.dev/burrow/internal/imagestore/catalogue"
	"burrow.dev/burrow/manifest"
)

// manifestFlags are those of every command that reads manifests.
func manifestFlags() []ucli.Flag {
	return []ucli.Flag{
		&ucli.StringSliceFlag{
			Name: "file", Aliases: []string{"f"}, TakesFile: true,
			Usage: "`PATH` of a manifest: a file, a folder, an https URL, or - (may be given several times)",
		},
		&ucli.StringSliceFlag{
			Name:  "set",
			Usage: "replace a field: `FIELD=VALUE` in every server, or KIND/NAME:FIELD=VALUE (may be given several times)",
		},
		&ucli.BoolFlag{Name: "lenient", Usage: "unknown fields are warnings"},
		&ucli.BoolFlag{Name: "allow-http", Usage: "accept http:// URLs"},
	}
}

// checkManifests loads and validates what -f names. Warnings are printed; problems are
// the error, all of them.
func checkManifests(c *ucli.Context, known manifest.Known) (*manifest.Set, error) {
	sources := append(c.StringSlice("file"), c.Args().Slice()...)
	if len(sources) == 0 {
		return nil, usageErrorf(c, "name a manifest with -f")
	}
	set, problems := manifest.Check(c.Context, sources, manifest.Options{
		Set: c.StringSlice("set"), Lenient: c.Bool("lenient"), AllowHTTP: c.Bool("allow-http"), Stdin: c.App.Reader, Known: known,
	}, known)
	warn(c, set.Warnings)
	return set, problems.Err()
}

func warn(c *ucli.Context, warnings manifest.Problems) {
	for _, w := range warnings {
		fmt.Fprintf(c.App.ErrWriter, "warning: %s\n", render.CleanLines(w.String()))
	}
}

// validateCommand checks manifests and touches nothing.
func validateCommand() *ucli.Command {
	return &ucli.Command{
		Name: "validate", Category: categoryResources, Usage: "check manifests, and touch nothing", ArgsUsage: "-f PATH ...",
		Description: "Every problem of every document is reported with its line. Where burrow runs, references to what stands\n" +
			"already are checked too; where Ansible is, playbooks are parsed by ansible-playbook --syntax-check. Exit codes: 0 valid, 2 invalid.",
		Flags:  append(manifestFlags(), outputFlag("table", "json")),
		Action: validate,
	}
}

func validate(c *ucli.Context) error {
	set, err := checkManifests(c, knownIfReachable(c))
	var problems manifest.Problems
	if err != nil && !errors.As(err, &problems) {
		return err
	}
	refused, err := checkPlaybooks(c, set, problems...)
	if err != nil {
		return err
	}
	problems = append(problems, refused...)
	if output(c) == "json" {
		return validationJSON(c, set, problems)
	}
	if err := problems.Err(); err != nil {
		return err
	}
	for _, doc := range set.Documents {
		fmt.Fprintf(c.App.Writer, "%s is valid\n", doc.Ref())
	}
	return nil
}

func validationJSON(c *ucli.Context, set *manifest.Set, problems manifest.Problems) error {
	result := struct {
		Valid     bool              `json:"valid"`
		Documents []string          `json:"documents"`
		Problems  manifest.Problems `json:"problems"`
		Warnings  manifest.Problems `json:"warnings"`
	}{len(problems) == 0, []string{}, problems, set.Warnings}
	for _, doc := range set.Documents {
		result.Documents = append(result.Documents, doc.Ref())
	}
	if err := printJSON(c.App.Writer, result); err != nil {
		return err
	}
	if !result.Valid {
		return &ExitError{Code: ExitInvalid}
	}
	return nil
}

// knownIfReachable asks the gateway what stands; where there is none, manifests are
// checked against each other and the catalogue only.
func knownIfReachable(c *ucli.Context) manifest.Known {
	local := manifest.NewSnapshot(nil, catalogue.Names(), false)
	cfg, err := loadConfig(c)
	if err != nil {
		return local
	}
	gw, err := gateway.Dial(c.Context, cfg.Gateway)
	if err != nil {
		return local
	}
	defer func() { _ = gw.Close() }()
	known, err := knownTo(c.Context, gw)
	if err != nil {
		return local
	}
	return known
}
