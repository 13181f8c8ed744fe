package workflows

import (
	"encoding/json"
	"time"

	"go.temporal.io/sdk/workflow"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/activities/domain"
	"burrow.dev/burrow/activities/network"
	"burrow.dev/burrow/activities/state"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
)

// PowerServer starts, stops or restarts a built server. A guest is asked to power off and,
// after its grace, forced. A started guest is wired before it runs.
func PowerServer(ctx workflow.Context, in PowerServerIn) error {
	p := &power{in: in}
	body := sequence{step{stepRecord, p.record}}
	if in.Action != PowerStart {
		body = append(body, step{"shut down", p.shutdown}, step{"unwire OVS", p.unwire})
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

// power carries the record of the server whose power changes.
type power struct {
	*operation
	in     PowerServerIn
	rec    manifest.Record
	spec   manifest.ServerSpec
	server activities.Server
	off    bool // the guest is off, as far as this operation knows
}

func (p *power) record(ctx workflow.Context) error {
	p.add(stepRecord, p.settle)
	rec, err := p.beginRecord(ctx, state.BeginIn{
		Kind: manifest.KindServer, Metadata: manifest.Metadata{Name: p.in.Name}, Phase: manifest.PhaseUpdating,
		RequestedBy: p.in.RequestedBy,
	}, nil)
	if err != nil {
		return err
	}
	p.rec, p.off = rec, rec.Status.PowerOff
	p.server = activities.Server{Name: p.in.Name, UID: p.rec.Metadata.UID}
	if err := json.Unmarshal(p.rec.Spec, &p.spec); err != nil {
		return errs.NewPermanent(p.server.Ref(), "read its record", err, "restore the record from a backup")
	}
	return nil
}

func (p *power) shutdown(ctx workflow.Context) error {
	grace := time.Duration(p.in.GraceSeconds) * time.Second
	p.detail(ctx, "shut down", "asked to power off, forced after %s", grace)
	_, err := call[activities.Nothing](ctx, p.operation, onHost(p.rec.Status.Host, grace+shutdownSlack), activities.DomainShutdown,
		domain.ShutdownIn{Server: p.server, GraceSeconds: p.in.GraceSeconds})
	p.off = err == nil
	return err
}

func (p *power) unwire(ctx workflow.Context) error {
	_, err := call[activities.Nothing](ctx, p.operation, onHost(p.rec.Status.Host, driverTimeout), activities.NetworkUnwire,
		network.UnwireIn{Server: p.server, Ports: p.rec.Status.Ports})
	return err
}

func (p *power) networks(ctx workflow.Context) error {
	_, err := call[activities.Nothing](ctx, p.operation, onHost(p.rec.Status.Host, driverTimeout), activities.NetworkEnsure,
		network.EnsureIn{Server: p.server, Ports: p.rec.Status.Ports})
	return err
}

func (p *power) start(ctx workflow.Context) error {
	p.add(stepDomain, p.offAgain)
	_, err := call[domain.StartOut](ctx, p.operation, onHost(p.rec.Status.Host, driverTimeout), activities.DomainStart,
		domain.StartOf(p.rec, p.spec))
	return err
}

func (p *power) wire(ctx workflow.Context) error {
	p.detail(ctx, stepWire, "%s", p.server.Name)
	if _, err := call[activities.Nothing](ctx, p.operation, onHost(p.rec.Status.Host, driverTimeout), activities.NetworkWire,
		network.WireIn{Server: p.server, Ports: p.rec.Status.Ports}); err != nil {
		return err
	}
	_, err := call[activities.Nothing](ctx, p.operation, onHost(p.rec.Status.Host, driverTimeout), activities.DomainResume,
		domain.ResumeIn{Server: p.server})
	p.off = p.off && err != nil
	return err
}

// offAgain takes back a start that did not get as far as a running guest: one that is
// paused and unwired would be neither Running nor Stopped.
func (p *power) offAgain(ctx workflow.Context) error {
	if !p.off || p.undoVersion == workflow.DefaultVersion {
		return nil
	}
	if _, err := call[activities.Nothing](ctx, p.operation, onHost(p.rec.Status.Host, shutdownSlack), activities.DomainShutdown,
		domain.ShutdownIn{Server: p.server}); err != nil {
		return err
	}
	return p.unwire(ctx)
}

func (p *power) finish(ctx workflow.Context) error {
	p.off = p.in.Action == PowerStop
	p.rec.Status.PowerOff = p.off
	if err := p.settle(ctx); err != nil {
		return err
	}
	p.phase(ctx, p.rec.Status.Phase)
	return nil
}

// settle writes how the guest is now: at the end, and when the operation could not go on.
func (p *power) settle(ctx workflow.Context) error {
	if p.rec.Metadata.UID == "" {
		return nil
	}
	p.rec.Status.Operation = nil
	p.rec.Status.Phase = manifest.PhaseRunning
	if p.off {
		p.rec.Status.Phase = manifest.PhaseStopped
	}
	return p.finishRecord(ctx, manifest.KindServer, p.rec)
}
