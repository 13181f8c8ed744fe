package cli

import (
	"encoding/json"

	ucli "github.com/urfave/cli/v2"
	"go.temporal.io/sdk/client"

	"burrow.dev/burrow/cli/follow"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/gateway"
	"burrow.dev/burrow/manifest"
	"burrow.dev/burrow/workflows"
)

// thisRunOnly are flags that change one run of a server's playbook. A Playbook always runs as
// declared: what it was declared with is what its record says it did.
var thisRunOnly = []string{"playbook", "inventory", "requirements", "check", "diff", "tags", "skip-tags", "extra-vars-file", "selector"}

// playbookRefs are the Playbooks that are named; none when something else is.
func playbookRefs(c *ucli.Context) []Ref {
	if c.NArg() == 0 {
		return nil
	}
	refs, err := parseRefs(c.Args().Slice())
	if err != nil {
		return nil
	}
	for _, ref := range refs {
		if ref.Kind != manifest.KindPlaybook {
			return nil
		}
	}
	return refs
}

// runPlaybooks runs Playbooks again as they were declared, over the servers that they are for now.
func runPlaybooks(c *ucli.Context, gw *gateway.Client, refs []Ref) error {
	for _, flag := range thisRunOnly {
		if c.IsSet(flag) {
			return usageErrorf(c, "--%s is for servers; a Playbook runs as it is declared: edit it and apply", flag)
		}
	}
	inputs := map[Ref]workflows.RunPlaybookIn{}
	for _, ref := range refs {
		rec, err := look(c.Context, gw, ref)
		if err != nil {
			return err
		}
		in := workflows.RunPlaybookIn{Metadata: rec.Metadata.Metadata, Bundle: rec.Status.Bundle, RequestedBy: requestedBy()}
		if err := json.Unmarshal(rec.Spec, &in.Spec); err != nil || in.Bundle == "" {
			return errs.NewPermanent(ref.String(), "run again", errs.Reason("its record has no playbook that ran"), "apply it again")
		}
		inputs[ref] = in
	}
	return operate(c, refs, func(tc client.Client, ref Ref) (follow.Target, error) {
		in := inputs[ref]
		return begin(c, tc, ref, "run "+ref.String(), workflows.Operation{RunPlaybook: &in})
	})
}
