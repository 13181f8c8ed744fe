package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"

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
		ArgsUsage: "[server] NAME ... | -l LABELS | playbook/NAME ...",
		Description: "Without --playbook the recorded playbook runs, from the folder that was applied. What is given here is\n" +
			"for this run; the server's declaration stays. A task that fails holds the server: retry, skip, or abort,\n" +
			"which leaves it Running. With --check nothing is changed (but by tasks that say check_mode: false); exit\n" +
			"code 3 says that something would be.",
		Flags: []ucli.Flag{
			&ucli.StringFlag{Name: "selector", Aliases: []string{"l"}, Usage: "all servers that have these `LABELS`: key=value,key"},
			&ucli.StringSliceFlag{Name: "playbook", TakesFile: true, Usage: "another playbook `FILE`, with the folder it is in; or the recorded one in an edited FOLDER (files may be given several times)"},
			&ucli.StringFlag{Name: "inventory", TakesFile: true, Usage: "inventory `FILE` that goes with --playbook"},
			&ucli.StringFlag{Name: "requirements", TakesFile: true, Usage: "requirements `FILE` of ansible-galaxy that goes with --playbook"},
			&ucli.BoolFlag{Name: "check", Usage: "only say what would change"},
			&ucli.BoolFlag{Name: "diff", Usage: "show differences in files, in the log"},
			&ucli.StringSliceFlag{Name: "tags", Usage: "only what has these `TAGS`"},
			&ucli.StringSliceFlag{Name: "skip-tags", Usage: "not what has these `TAGS`"},
			&ucli.StringFlag{Name: "extra-vars-file", TakesFile: true, Usage: "YAML or JSON `FILE` of variables. They stay in the operation's history: write secret:NAME for a secret"},
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
	if refs := playbookRefs(c); len(refs) > 0 {
		return runPlaybooks(c, gw, refs)
	}
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
	a := manifest.Ansible{Playbook: c.StringSlice("playbook"), Inventory: c.String("inventory"), Requirements: c.String("requirements")}
	more := a.Inventory + a.Requirements
	if len(a.Playbook) == 0 {
		if more != "" {
			return usageErrorf(c, "--inventory and --requirements go with --playbook")
		}
		return nil
	}
	info, err := os.Stat(a.Playbook[0])
	if err != nil {
		return errs.NewPermanent("playbook "+a.Playbook[0], "read", err, "name a file or a folder")
	}
	if info.IsDir() {
		if len(a.Playbook) > 1 || more != "" {
			return usageErrorf(c, "with a folder, name nothing else: its recorded playbook, inventory and requirements are used")
		}
		return p.packInstead(c, servers, a.Playbook[0], in)
	}
	here, err := os.Getwd()
	if err != nil {
		return err
	}
	dir, rel, err := bundle.Root(here, filesOf(a)...)
	if err != nil {
		return err
	}
	if in.Bundle, err = p.packAll(dir); err != nil {
		return err
	}
	a = withFiles(a, rel)
	in.Playbook, in.Inventory, in.Requirements = a.Playbook, a.Inventory, a.Requirements
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
		run, err := recordedRun(c.Context, gw, ref)
		if err != nil {
			return err
		}
		if err := playbooksIn(ref, run, "configure", dir); err != nil {
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
	if err := manifest.CheckSecretNames(vars); err != nil {
		return nil, errs.NewPermanent("variables file "+path, "read", err, "write secret:NAME, and set it: burrow secret set NAME")
	}
	if err := manifest.CheckConnection(vars); err != nil {
		return nil, errs.NewPermanent("variables file "+path, "read", err, "remove it")
	}
	return vars, nil
}
