package workflows

import (
	"encoding/json"
	"strings"

	"go.temporal.io/sdk/workflow"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/activities/ansible"
	"burrow.dev/burrow/activities/guest"
	"burrow.dev/burrow/activities/state"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
)

const stepTargets = "find servers"

// RunPlaybook runs a Playbook document over its servers, once all of them are Running. It
// ends Ready, or Failed with its reason, or waits Held for a person. What tasks did on the
// servers stays in every case: nobody can undo a playbook.
func RunPlaybook(ctx workflow.Context, in RunPlaybookIn) (manifest.Record, error) {
	r := &playbookRun{in: in}
	body := sequence{
		step{stepRecord, r.record},
		step{stepCheck, r.check},
		step{stepTargets, r.find},
		step{stepReady, r.reach},
		step{stepPlaybook, r.play},
		step{stepFinish, r.finish},
	}
	op, err := begin(ctx, NameRunPlaybook, manifest.Ref(manifest.KindPlaybook, in.Metadata.Name), manifest.PhaseProvisioning, body)
	if err != nil {
		return manifest.Record{}, err
	}
	r.operation = op
	op.onFailure, op.recordHold = r.policy, r.holdRecord
	if err := op.listen(ctx, stepPlaybook, r.revise); err != nil {
		return manifest.Record{}, err
	}
	describe(ctx, op, "", in.RequestedBy)
	if err := op.run(ctx, body); err != nil {
		return manifest.Record{}, r.failed(ctx, err)
	}
	op.phase(ctx, manifest.PhaseReady)
	return r.rec, nil
}

// playbookRun carries what one step found to the next.
type playbookRun struct {
	*operation
	in      RunPlaybookIn
	rec     manifest.Record
	ran     bool            // it has a record of an earlier run
	was     manifest.Status // of that run
	servers []state.Target
	hosts   []ansible.Host
	last    *manifest.PlaybookStatus
}

// record makes the record the operation's: a new one, or that of an earlier run.
func (r *playbookRun) record(ctx workflow.Context) error {
	found, err := call[state.LookOut](ctx, r.operation, onControl(quickTimeout), activities.StateLook,
		state.LookIn{Kind: manifest.KindPlaybook, Name: r.in.Metadata.Name})
	if err != nil {
		return err
	}
	begin := state.BeginIn{
		Kind: manifest.KindPlaybook, Metadata: r.in.Metadata, Phase: manifest.PhaseProvisioning,
		Bundle: r.in.Bundle, RequestedBy: r.in.RequestedBy,
	}
	r.ran = found.Found && found.Record.Status.Phase != manifest.PhaseFailed
	if r.ran {
		begin.Phase = manifest.PhaseUpdating
	}
	r.rec, err = r.beginRecord(ctx, begin, r.in.Spec)
	r.was = r.rec.Status
	return err
}

func (r *playbookRun) check(ctx workflow.Context) error {
	r.detail(ctx, stepCheck, "%s", strings.Join(r.in.Spec.Playbook, ", "))
	_, err := call[activities.Nothing](ctx, r.operation, checkOn(r.in.Spec.Ansible), activities.AnsibleCheck,
		ansible.CheckIn{Owner: r.Resource, Bundle: r.in.Bundle, Ansible: r.in.Spec.Ansible})
	return err
}

// find finds the servers as they are now, and writes down which they are.
func (r *playbookRun) find(ctx workflow.Context) error {
	out, err := call[state.TargetsOut](ctx, r.operation, onControl(quickTimeout), activities.StateTargets,
		state.TargetsIn{Owner: r.Resource, Targets: r.in.Spec.Targets})
	if err != nil {
		return err
	}
	r.servers = out.Servers
	r.detail(ctx, stepTargets, "%s", strings.Join(r.names(), ", "))
	_, err = call[activities.Nothing](ctx, r.operation, onControl(quickTimeout), activities.StateNote, state.NoteIn{
		Kind: manifest.KindPlaybook, Name: r.rec.Metadata.Name, UID: r.rec.Metadata.UID, Status: r.status(),
	})
	return err
}

func (r *playbookRun) names() []string {
	var names []string
	for _, s := range r.servers {
		names = append(names, s.Server.Name)
	}
	return names
}

// reach waits until every server lets burrow log in, a few at a time.
func (r *playbookRun) reach(ctx workflow.Context) error {
	r.detail(ctx, stepReady, "until %s", manifest.ReadinessSSH)
	r.hosts = make([]ansible.Host, len(r.servers))
	return sideBySide(ctx, len(r.servers), defaultWidth, func(ctx workflow.Context, i int) (err error) {
		r.hosts[i], err = r.login(ctx, r.servers[i])
		return err
	})
}

// login is the server as a host of the run, once burrow can log in to it.
func (r *playbookRun) login(ctx workflow.Context, s state.Target) (ansible.Host, error) {
	out, err := r.awaitGuest(ctx, s.Host, reachTimeout, guest.WaitReadyIn{
		Server: s.Server, Ports: s.Ports, Login: s.Login, HostKeys: s.HostKeys, Readiness: manifest.ReadinessSSH,
	})
	host := ansible.Host{
		Server: s.Server, Network: networkOf(s.Ports, out.Address), Address: out.Address, Login: s.Login, HostKeys: s.HostKeys,
		Labels: s.Labels, Image: s.Image,
	}
	for _, port := range s.Ports {
		host.Networks = append(host.Networks, port.Network)
	}
	return host, err
}

func (r *playbookRun) play(ctx workflow.Context) error {
	on := r.servers[0].Host // of all of them
	r.add(stepPlaybook, func(ctx workflow.Context) error {
		_, err := call[activities.Nothing](ctx, r.operation, onHost(on, driverTimeout), activities.AnsibleReap, ansible.ReapIn{Owner: r.Resource})
		return err
	})
	last, err := r.runAnsible(ctx, on, ansible.RunIn{
		Owner: r.Resource, Bundle: r.in.Bundle, Ansible: r.in.Spec.Ansible, Hosts: r.hosts, Whole: true,
	})
	if err == nil || r.policy(stepPlaybook) == manifest.OnFailureIgnore {
		r.last = last
	}
	return err
}

// status is what is known of the run so far.
func (r *playbookRun) status() manifest.Status {
	status := manifest.Status{Phase: manifest.PhaseReady, Bundle: r.in.Bundle, Playbook: r.last}
	for _, s := range r.servers {
		status.Targets = append(status.Targets, s.Identity)
	}
	return status
}

func (r *playbookRun) finish(ctx workflow.Context) error {
	spec, err := json.Marshal(r.in.Spec)
	if err != nil {
		return errs.NewPermanent(r.Resource, "encode its spec", err, "report this with the manifest")
	}
	r.rec.Status, r.rec.Spec = r.status(), spec
	_, err = call[activities.Nothing](ctx, r.operation, onControl(quickTimeout), activities.StateFinish, state.FinishIn{
		Kind: manifest.KindPlaybook, Name: r.rec.Metadata.Name, UID: r.rec.Metadata.UID, Status: r.rec.Status,
		Spec: spec, Metadata: r.in.Metadata,
	})
	return err
}

func (r *playbookRun) policy(step string) manifest.OnFailure {
	switch {
	case step != stepPlaybook:
		return manifest.OnFailureRollback
	case r.in.Spec.OnFailure == "":
		return manifest.OnFailureHold
	}
	return r.in.Spec.OnFailure
}

func (r *playbookRun) holdRecord(ctx workflow.Context, message string) error {
	status := r.status()
	op := currentOperation(ctx, r.Progress.Operation)
	op.Step = r.heldStep
	status.Operation = &op
	going := manifest.PhaseProvisioning
	if r.ran {
		going = manifest.PhaseUpdating
	}
	_, err := call[activities.Nothing](ctx, r.operation, onControl(quickTimeout), activities.StateHold, state.HoldIn{
		Kind: manifest.KindPlaybook, Name: r.rec.Metadata.Name, UID: r.rec.Metadata.UID, Message: message, Status: status, Going: going,
	})
	return err
}

// revise takes what a retry brought: an edited playbook.
func (r *playbookRun) revise(in RetryIn) {
	if in.Bundle != "" {
		r.in.Bundle, r.in.Spec.Source = in.Bundle, r.in.Spec.Source.Edited()
	}
	if in.Ansible != nil {
		r.in.Spec.Ansible = *in.Ansible
	}
}

// failed ends the record: Failed with the reason; cancelled, it says what it said before.
func (r *playbookRun) failed(ctx workflow.Context, cause error) error {
	if r.rec.Metadata.UID == "" || !r.ran || !stopped(cause) {
		return r.endRecord(ctx, manifest.KindPlaybook, r.in.Metadata.Name, r.rec.Metadata.UID, cause)
	}
	free, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	before := r.rec
	before.Status = r.was
	before.Status.Phase, before.Status.Operation = manifest.PhaseReady, nil
	if err := r.finishRecord(workflow.WithValue(free, stepKey{}, stepUndo), manifest.KindPlaybook, before); err != nil {
		return fail(errs.NewPermanent(r.Resource, "settle its record", errs.Reason("%s (after: %s)", reason(err), reason(cause)), "run `burrow sweep`"))
	}
	return fail(cause)
}
