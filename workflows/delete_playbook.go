package workflows

import (
	"go.temporal.io/sdk/workflow"

	"burrow.dev/burrow/manifest"
)

// DeletePlaybook forgets a Playbook. What it did on its servers stays.
func DeletePlaybook(ctx workflow.Context, in DeleteIn) error {
	r := &removal{kind: manifest.KindPlaybook, in: in}
	body := sequence{step{stepRecord, r.record}, step{stepFinish, r.finish}}
	return r.runAs(ctx, NameDeletePlaybook, manifest.Ref(manifest.KindPlaybook, in.Name), body)
}
