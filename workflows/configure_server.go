package workflows

import (
	"slices"

	"go.temporal.io/sdk/workflow"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/activities/state"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
)

// ConfigureServer runs a playbook on a server that is Running: the recorded one again, or
// another. A task that fails holds it, as in a build; given up or cancelled, the server is
// Running as it was. With Check nothing is changed and nothing is written down.
func ConfigureServer(ctx workflow.Context, in ConfigureServerIn) (ConfigureServerOut, error) {
	c := &configure{in: in}
	c.standing.in.Metadata.Name, c.standing.in.RequestedBy = in.Name, in.RequestedBy
	body := sequence{
		step{stepRecord, c.record},
		step{stepCheck, c.check},
		step{stepReady, c.reach},
		step{stepPlaybook, c.playbook},
		step{stepFinish, c.finish},
	}
	op, err := begin(ctx, NameConfigureServer, "server/"+in.Name, manifest.PhaseUpdating, body)
	if err != nil {
		return ConfigureServerOut{}, err
	}
	c.operation = op
	if !in.Check {
		op.onFailure, op.recordHold, op.beforeUndo = c.policy, c.holdRecord, c.unhold
	}
	if err := op.listen(ctx, stepPlaybook, c.revise); err != nil {
		return ConfigureServerOut{}, err
	}
	describe(ctx, op, in.Name, in.RequestedBy)
	if err := op.run(ctx, body); err != nil {
		return ConfigureServerOut{}, fail(err)
	}
	op.phase(ctx, manifest.PhaseRunning)
	out := ConfigureServerOut{Check: in.Check}
	if c.run != nil {
		out.RunID, out.Recap = c.run.RunID, c.run.Recap
	}
	return out, nil
}

// configure is the server that a playbook runs on.
type configure struct {
	standing
	in ConfigureServerIn
}

// record reads the server, and settles which playbook runs and how.
func (c *configure) record(ctx workflow.Context) error {
	err := c.begin(ctx)
	if err != nil {
		return err
	}
	if c.off {
		return errs.NewPermanent(c.server.Ref(), "configure", errs.Reason("it is stopped"), "`burrow start "+c.server.Name+"` first")
	}
	spec := &c.standing.in.Spec
	if spec.Ansible == nil {
		if len(c.in.Playbook) == 0 {
			return errs.NewPermanent(c.server.Ref(), "configure", errs.Reason("it has no playbook"), "name one with --playbook")
		}
		spec.Ansible = &manifest.Ansible{Retries: defaultPlaybookRetries}
	}
	a := spec.Ansible
	if c.in.Bundle != "" {
		c.standing.in.Bundle, a.Source = c.in.Bundle, nil
	}
	if len(c.in.Playbook) > 0 {
		a.Playbook, a.Inventory, a.Requirements = c.in.Playbook, c.in.Inventory, c.in.Requirements
		a.Pull, a.RemotePlaybook = nil, false // what is named runs from outside
	}
	if len(c.in.Tags) > 0 {
		a.Tags = c.in.Tags
	}
	if len(c.in.SkipTags) > 0 {
		a.SkipTags = c.in.SkipTags
	}
	a.ExtraVars = merged(a.ExtraVars, c.in.ExtraVars)
	a.ExtraArgs = slices.Clone(a.ExtraArgs)
	if c.in.Check {
		a.ExtraArgs, a.Retries = append(a.ExtraArgs, "--check"), 0
	}
	if c.in.Diff {
		a.ExtraArgs = append(a.ExtraArgs, "--diff")
	}
	return nil
}

// begin makes the record the operation's; a check only reads it.
func (c *configure) begin(ctx workflow.Context) error {
	if !c.in.Check {
		return c.standing.record(ctx)
	}
	found, err := call[state.LookOut](ctx, c.operation, onControl(quickTimeout), activities.StateLook, state.LookIn{Kind: manifest.KindServer, Name: c.in.Name})
	if err != nil {
		return err
	}
	if !found.Found || found.Record.Status.Phase != manifest.PhaseRunning {
		return errs.NewPermanent("server/"+c.in.Name, "check", errs.Reason("it is not Running"), "`burrow get servers` shows how it stands")
	}
	return c.take(found.Record)
}

func (c *configure) reach(ctx workflow.Context) error {
	return c.waitReady(ctx, c.ports, manifest.ReadinessSSH, reachTimeout)
}

func (c *configure) finish(ctx workflow.Context) error {
	if c.in.Check {
		c.skip(ctx, stepFinish, "only checked")
		return nil
	}
	if c.run != nil { // skipped, it is as it was
		c.was.Status.Playbook = c.run
	}
	return c.settle(ctx)
}

// merged are variables with those that come last on top.
func merged(under, over map[string]any) map[string]any {
	if len(over) == 0 {
		return under
	}
	all := make(map[string]any, len(under)+len(over))
	for _, vars := range []map[string]any{under, over} {
		for _, name := range workflow.DeterministicKeys(vars) {
			all[name] = vars[name]
		}
	}
	return all
}
