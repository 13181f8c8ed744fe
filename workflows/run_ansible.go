package workflows

import (
	"errors"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/activities/ansible"
	"burrow.dev/burrow/manifest"
)

// playbook runs the server's playbook, once its syntax check has ended well.
func (p *provision) playbook(ctx workflow.Context) error {
	spec := p.in.Spec.Ansible
	if p.in.Skips(stepPlaybook) {
		p.skip(ctx, stepPlaybook, "no playbook")
		return nil
	}
	if err := p.await(ctx, stepCheck); err != nil {
		return err
	}
	p.saga.add(stepPlaybook, func(ctx workflow.Context) error {
		_, err := call[activities.Nothing](ctx, p.operation, onHost(p.host, driverTimeout), activities.AnsibleReap,
			ansible.ReapIn{Server: p.server})
		return err
	})
	run, err := p.runAnsible(ctx, p.host, ansible.RunIn{
		Owner: p.server.Ref(), Bundle: p.in.Bundle, Ansible: *spec, Hosts: []ansible.Host{p.ansibleHost()}, InGuest: p.nextPlay(ctx),
	})
	if err == nil || p.policy(stepPlaybook) == manifest.OnFailureIgnore {
		p.run = run
	}
	return err
}

// runAnsible runs playbooks on a host, and gives the run as a record keeps it: with an
// error, the run that ended by it, nil where that is not known.
func (op *operation) runAnsible(ctx workflow.Context, host string, in ansible.RunIn) (*manifest.PlaybookStatus, error) {
	op.detail(ctx, stepPlaybook, "%s", whatRuns(in.Ansible))
	timeout, err := time.ParseDuration(string(in.Ansible.Timeout))
	if err != nil || timeout <= 0 {
		timeout = defaultPlaybookTimeout
	}
	out, err := call[ansible.RunOut](ctx, op, onHost(host, timeout+playbookSlack), activities.AnsibleRun, in)
	if err != nil {
		if out = runOf(err); out.RunID == "" {
			return nil, err
		}
	}
	return &manifest.PlaybookStatus{RunID: out.RunID, LogKey: out.LogKey, OK: err == nil, EndedAt: workflow.Now(ctx), Recap: out.Recap}, err
}

// runOf reads which run ended by an error.
func runOf(err error) (out ansible.RunOut) {
	var app *temporal.ApplicationError
	if errors.As(err, &app) && app.HasDetails() {
		_ = app.Details(&out) // those of an earlier version may be others: then it is not known
	}
	return out
}

// ansibleHost is the server as a host of its own run.
func (p *provision) ansibleHost() ansible.Host {
	h := ansible.Host{
		Server: p.server, Address: p.address, Login: p.seeded.Login, HostKeys: p.seeded.HostKeys,
		Labels: p.in.Metadata.Labels, Image: p.in.Spec.Image, Networks: networkNames(p.in.Spec.NetworkInterface),
	}
	h.Network = networkOf(p.ports, p.address)
	return h
}
