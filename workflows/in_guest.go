package workflows

import (
	"fmt"
	"strings"

	"go.temporal.io/sdk/workflow"

	"burrow.dev/burrow/activities/seed"
	"burrow.dev/burrow/manifest"
)

// uncheckable says why there is no playbook to check before the guest is there.
func (p *provision) uncheckable() string {
	if p.in.Spec.Ansible == nil {
		return "no playbook"
	}
	return "the guest fetches it"
}

// firstPlay is the playbook that the guest runs at its first boot; nil: none.
func (p *provision) firstPlay() *seed.Play {
	spec := p.in.Spec.Ansible
	if spec == nil || !spec.InGuest() {
		return nil
	}
	p.begunPlay = seed.FirstPlay
	return &seed.Play{
		Ansible: *spec, Bundle: p.in.Bundle,
		Labels: p.in.Metadata.Labels, Networks: networkNames(p.in.Spec.NetworkInterface), Image: p.in.Spec.Image,
	}
}

// nextPlay names the run in the guest that the step is about: that of the first boot once,
// then a new one each time; "" where the playbook runs from outside.
func (p *provision) nextPlay(ctx workflow.Context) string {
	if !p.in.Spec.Ansible.InGuest() {
		return ""
	}
	key := p.begunPlay
	if key == "" {
		p.plays++
		key = fmt.Sprintf("%s-%d", workflow.GetInfo(ctx).WorkflowExecution.RunID, p.plays)
	}
	p.begunPlay = ""
	return key
}

// whatRuns names playbooks for people.
func whatRuns(spec manifest.Ansible) string {
	names := strings.Join(spec.Playbook, ", ")
	switch {
	case spec.Pull != nil:
		return names + " of " + spec.Pull.URL + ", in the guest"
	case spec.InGuest():
		return names + ", in the guest"
	}
	return names
}
