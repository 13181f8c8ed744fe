package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/goccy/go-yaml"
	ucli "github.com/urfave/cli/v2"
	"go.temporal.io/sdk/client"

	"burrow.dev/burrow/cli/follow"
	"burrow.dev/burrow/internal/bundle"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/gateway"
	"burrow.dev/burrow/manifest"
	"burrow.dev/burrow/workflows"
)

// maxVarsBytes bounds a file of variables: they are part of the operation's history.
const maxVarsBytes = 64 << 10

// configureCommand runs a playbook on servers that stand.
func configureCommand() *ucli.Command {
	return &ucli.Command{
		Name:      "configure",
		Category:  categoryOperations,
		Usage:     "run the playbook of servers again, or another one",
		ArgsUsage: "[server] NAME ... | -l LABELS",
		Description: "Without --playbook the recorded playbook runs, from the folder that was applied. What is given here is\n" +
			"for this run; the server's declaration stays. A task that fails holds the server: retry, skip, or abort,\n" +
			"which leaves it Running. With --check nothing is changed (but by tasks that say check_mode: false); exit\n" +
			"code 3 says that something would be.",
		Flags: []ucli.Flag{
			&ucli.StringFlag{Name: "selector", Aliases: []string{"l"}, Usage: "all servers that have these `LABELS`: key=value,key"},
			&ucli.StringSliceFlag{Name: "playbook", TakesFile: true, Usage: "another playbook `FILE`, with the folder it is in; or the recorded one in an edited FOLDER (files may be given several times)"},
			&ucli.StringFlag{Name: "inventory", TakesFile: true, Usage: "inventory `FILE` that goes with --playbook"},
			&ucli.BoolFlag{Name: "check", Usage: "only say what would change"},
			&ucli.BoolFlag{Name: "diff", Usage: "show differences in files, in the log"},
			&ucli.StringSliceFlag{Name: "tags", Usage: "only what has these `TAGS`"},
			&ucli.StringSliceFlag{Name: "skip-tags", Usage: "not what has these `TAGS`"},
			&ucli.StringFlag{Name: "extra-vars-file", TakesFile: true, Usage: "YAML or JSON `FILE` of variables; they stay in the operation's history, so no secrets"},
			queueFlag(), detachFlag(), outputFlag("table", "json"),
		},
		Action: configureServers,
	}
}

func configureServers(c *ucli.Context) error {
	gw, err := openGateway(c)
	if err != nil {
		return err
	}
	defer gw.Close()
	servers, err := configurable(c, gw)
	if err != nil {
		return err
	}
	in := workflows.ConfigureServerIn{
		Tags: c.StringSlice("tags"), SkipTags: c.StringSlice("skip-tags"), Check: c.Bool("check"), Diff: c.Bool("diff"), RequestedBy: requestedBy(),
	}
	if in.ExtraVars, err = varsOf(c.String("extra-vars-file")); err != nil {
		return err
	}
	p := &plan{}
	defer p.close()
	if err := p.packGiven(c, servers, &in); err != nil {
		return err
	}
	if err := p.upload(c.Context, gw); err != nil {
		return err
	}
	return operate(c, servers, func(tc client.Client, ref Ref) (follow.Target, error) {
		one := in
		one.Name = ref.Name
		return begin(c, tc, ref, "configure "+ref.String(), workflows.Operation{Configure: &one})
	})
}

// configurable are the servers that are named, or have the labels. Each must be there.
func configurable(c *ucli.Context, gw *gateway.Client) ([]Ref, error) {
	labels := c.String("selector")
	if (labels == "") == (c.NArg() == 0) {
		return nil, usageErrorf(c, "name servers, or choose them with -l")
	}
	if labels == "" {
		refs, err := serverRefs(c)
		if err != nil {
			return nil, err
		}
		return refs, thereAre(c.Context, gw, refs)
	}
	sel, err := parseSelector(labels)
	if err != nil {
		return nil, usageErrorf(c, "%w", err)
	}
	records, err := query{kinds: []manifest.Kind{manifest.KindServer}, selector: sel}.fetch(c, gw)
	if err != nil {
		return nil, err
	}
	var refs []Ref
	for _, rec := range records {
		refs = append(refs, Ref{Kind: rec.Kind, Name: rec.Metadata.Name})
	}
	if len(refs) == 0 {
		return nil, errs.NewPermanent("servers with "+labels, "configure", errs.ErrNotFound, "`burrow get servers -o wide` shows labels")
	}
	return refs, nil
}

// packGiven archives what --playbook names: files with their folder, or a folder that
// takes the place of the one that was applied.
func (p *plan) packGiven(c *ucli.Context, servers []Ref, in *workflows.ConfigureServerIn) error {
	given, inventory := c.StringSlice("playbook"), c.String("inventory")
	if len(given) == 0 {
		if inventory != "" {
			return usageErrorf(c, "--inventory goes with --playbook")
		}
		return nil
	}
	info, err := os.Stat(given[0])
	if err != nil {
		return errs.NewPermanent("playbook "+given[0], "read", err, "name a file or a folder")
	}
	if info.IsDir() {
		if len(given) > 1 || inventory != "" {
			return usageErrorf(c, "with a folder, name nothing else: its recorded playbook and inventory are used")
		}
		return p.packInstead(c, servers, given[0], in)
	}
	files := slices.Clone(given)
	if inventory != "" {
		files = append(files, inventory)
	}
	here, err := os.Getwd()
	if err != nil {
		return err
	}
	dir, rel, err := bundle.Root(here, files...)
	if err != nil {
		return err
	}
	if in.Bundle, err = p.packAll(dir); err != nil {
		return err
	}
	in.Playbook = rel[:len(given)]
	if inventory != "" {
		in.Inventory = rel[len(rel)-1]
	}
	return nil
}

// packInstead archives a folder that must have the playbooks that the servers were applied with.
func (p *plan) packInstead(c *ucli.Context, servers []Ref, dir string, in *workflows.ConfigureServerIn) error {
	gw, err := openGateway(c)
	if err != nil {
		return err
	}
	defer gw.Close()
	for _, ref := range servers {
		if err := playbooksIn(c.Context, gw, ref, "configure", dir); err != nil {
			return err
		}
	}
	in.Bundle, err = p.packAll(dir)
	return err
}

// packAll archives a folder, to be uploaded with the plan.
func (p *plan) packAll(dir string) (digest string, err error) {
	b, err := packFolder(dir)
	if err != nil {
		return "", err
	}
	p.bundles = append(p.bundles, b)
	return b.digest, nil
}

// varsOf reads a file of variables; "" has none.
func varsOf(path string) (map[string]any, error) {
	if path == "" {
		return nil, nil
	}
	refuse := func(err error) error {
		return errs.NewPermanent("variables file "+path, "read", err, "write a YAML or JSON mapping, as for ansible-playbook -e @FILE")
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, refuse(err)
	}
	if info.Size() > maxVarsBytes {
		return nil, refuse(fmt.Errorf("it is larger than %d KiB", maxVarsBytes>>10))
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, refuse(err)
	}
	var vars map[string]any
	if err := yaml.Unmarshal(text, &vars); err != nil {
		// Without the lines around it: the wrong file may be one with secrets in it.
		return nil, refuse(errors.New(yaml.FormatError(err, false, false)))
	}
	if _, err := json.Marshal(vars); err != nil { // keys that are no text, say
		return nil, refuse(err)
	}
	return vars, nil
}
