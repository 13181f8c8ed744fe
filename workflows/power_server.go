package workflows

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/activities/domain"
	"burrow.dev/burrow/manifest"
)

const (
	stepShutdown = "shut down"
	stepUnwire   = "unwire OVS"
)

// PowerServer starts, stops or restarts a built server. A guest is asked to power off and,
// after its grace, forced. A started guest is wired before it runs.
func PowerServer(ctx workflow.Context, in PowerServerIn) error {
	p := &power{in: in}
	p.standing.in.Metadata.Name, p.standing.in.RequestedBy = in.Name, in.RequestedBy
	body := sequence{step{stepRecord, p.record}}
	if in.Action != PowerStart {
		body = append(body, step{stepShutdown, p.shutdown}, step{stepUnwire, p.unplug})
	}
	if in.Action != PowerStop {
		body = append(body, step{stepNetworks, p.networks}, step{stepDomain, p.start}, step{stepWire, p.wire})
	}
	body = append(body, step{stepFinish, p.finish})
	op, err := begin(ctx, NamePowerServer, "server/"+in.Name, manifest.PhaseUpdating, body)
	if err != nil {
		return err
	}
	p.operation = op
	describe(ctx, op, in.Name, in.RequestedBy)
	if err := op.run(ctx, body); err != nil {
		return fail(err)
	}
	return nil
}

// power is the server whose power changes.
type power struct {
	standing
	in PowerServerIn
}

// graceOf is how long a guest may take to power off by itself.
func graceOf(seconds int) time.Duration { return time.Duration(seconds) * time.Second }

func (p *power) shutdown(ctx workflow.Context) error {
	grace := graceOf(p.in.GraceSeconds)
	p.detail(ctx, stepShutdown, "asked to power off, forced after %s", grace)
	_, err := call[activities.Nothing](ctx, p.operation, onHost(p.host, grace+shutdownSlack), activities.DomainShutdown,
		domain.ShutdownIn{Server: p.server, GraceSeconds: p.in.GraceSeconds})
	p.off = err == nil
	return err
}

func (p *power) unplug(ctx workflow.Context) error { return p.unwire(ctx, p.ports) }

func (p *power) networks(ctx workflow.Context) error { return p.ensureNetworks(ctx, p.ports) }

func (p *power) start(ctx workflow.Context) error {
	p.add(stepDomain, p.offAgain)
	return p.standing.start(ctx, p.asRecorded())
}

func (p *power) wire(ctx workflow.Context) error {
	p.detail(ctx, stepWire, "%s", p.server.Name)
	return p.connect(ctx, p.asRecorded())
}

// asRecorded is the start of the guest as its record has it.
func (p *power) asRecorded() domain.StartIn { return domain.StartOf(p.was, p.standing.in.Spec) }

// offAgain takes back a start that did not get as far as a running guest.
func (p *power) offAgain(ctx workflow.Context) error {
	if !p.off || p.undoVersion < undoOnce {
		return nil
	}
	return p.powerOff(putBack(ctx), 0)
}

func (p *power) finish(ctx workflow.Context) error {
	p.off = p.in.Action == PowerStop
	p.was.Status.PowerOff = p.off
	if p.in.Action != PowerStop {
		p.was.Status.Conditions = without(p.was.Status.Conditions, manifest.ConditionRestart)
	}
	if err := p.settle(ctx); err != nil {
		return err
	}
	p.phase(ctx, p.settled(p.was).Status.Phase)
	return nil
}
