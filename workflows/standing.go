package workflows

import (
	"encoding/json"

	"go.temporal.io/sdk/workflow"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/activities/domain"
	"burrow.dev/burrow/activities/network"
	"burrow.dev/burrow/activities/seed"
	"burrow.dev/burrow/activities/state"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
)

// standing is a server that was built before, while an operation works on it: it has what
// a build would have found by its end, read from the record.
type standing struct {
	provision
	was  manifest.Record // the record as the operation found it
	off  bool            // the guest is off, as far as the operation knows
	held bool            // the record has said Held, with what was made by then
}

// record makes the record the operation's. Its undo is the record as it was.
func (s *standing) record(ctx workflow.Context) error {
	_, err := s.recordFor(ctx, nil)
	return err
}

// recordFor is record, and has it decided what leads to what is declared.
func (s *standing) recordFor(ctx workflow.Context, declared *manifest.Declared) (manifest.Decision, error) {
	s.add(stepRecord, s.settle)
	out, err := s.beginWith(ctx, state.BeginIn{
		Kind: manifest.KindServer, Metadata: manifest.Metadata{Name: s.in.Metadata.Name}, Phase: manifest.PhaseUpdating,
		RequestedBy: s.in.RequestedBy, Declared: declared,
	})
	if err != nil {
		return manifest.Decision{}, err
	}
	return out.Decision, s.take(out.Record)
}

// take reads the record of a server that stands.
func (s *standing) take(rec manifest.Record) error {
	s.was, s.rec, s.off = rec, rec, rec.Status.PowerOff
	s.server = activities.Server{Name: rec.Metadata.Name, UID: rec.Metadata.UID}
	s.in.Metadata, s.in.Bundle = rec.Metadata.Metadata, rec.Status.Bundle
	s.in.Spec = manifest.ServerSpec{}
	s.host, s.ports, s.disks = rec.Status.Host, rec.Status.Ports, rec.Status.Disks
	s.seeded = seed.WriteOut{Path: rec.Status.Seed, Login: rec.Status.Login, HostKeys: rec.Status.HostKeys}
	return readSpec(rec, &s.in.Spec)
}

// readSpec reads what a server's record declares.
func readSpec(rec manifest.Record, spec *manifest.ServerSpec) error {
	if err := json.Unmarshal(rec.Spec, spec); err != nil {
		return errs.NewPermanent(manifest.Ref(manifest.KindServer, rec.Metadata.Name), "read its record", err, "restore the record from a backup")
	}
	return nil
}

// settle writes the record as it was, with how the guest is now: at the end, and when the
// operation could not go on.
func (s *standing) settle(ctx workflow.Context) error {
	if s.was.Metadata.UID == "" {
		return nil
	}
	return s.finishRecord(ctx, manifest.KindServer, s.settled(s.was))
}

// settled is a record whose operation is over.
func (s *standing) settled(rec manifest.Record) manifest.Record {
	rec.Status.Operation = nil
	rec.Status.Phase = manifest.PhaseRunning
	if s.off {
		rec.Status.Phase = manifest.PhaseStopped
	}
	return rec
}

// current is the record's status with what the operation has made of it so far.
func (s *standing) current() manifest.Status {
	status := s.was.Status
	status.Ports, status.Addresses, status.Disks, status.Seed = s.ports, addressesOf(s.ports), s.disks, s.seeded.Path
	return status
}

// holdRecord writes a hold, or its end: a host that boots meanwhile starts what is held.
func (s *standing) holdRecord(ctx workflow.Context, message string) error {
	s.held = true
	return s.note(ctx, message, s.current())
}

// unhold makes the record say Updating, with the server as it was, before anything is
// undone: a host that boots in the middle of the undo must not start what is undone.
func (s *standing) unhold(ctx workflow.Context) error {
	if !s.held {
		return nil
	}
	return s.note(ctx, "", s.was.Status)
}

func (s *standing) note(ctx workflow.Context, message string, status manifest.Status) error {
	op := currentOperation(ctx, s.Progress.Operation)
	op.Step = s.heldStep
	status.Operation = &op
	_, err := call[activities.Nothing](ctx, s.operation, onControl(quickTimeout), activities.StateHold, state.HoldIn{
		Kind: manifest.KindServer, Name: s.server.Name, UID: s.server.UID, Message: message, Status: status, Going: s.going,
	})
	return err
}

// at is the server's host.
func (s *standing) at() target { return onHost(s.host, driverTimeout) }

// powerOff powers the guest off and takes its ports off the wire.
func (s *standing) powerOff(ctx workflow.Context, graceSeconds int) error {
	at := onHost(s.host, graceOf(graceSeconds)+shutdownSlack)
	if _, err := call[activities.Nothing](ctx, s.operation, at, activities.DomainShutdown,
		domain.ShutdownIn{Server: s.server, GraceSeconds: graceSeconds}); err != nil {
		return err
	}
	s.off = true
	return s.unwire(ctx, s.ports)
}

func (s *standing) unwire(ctx workflow.Context, ports []manifest.Port) error {
	_, err := call[activities.Nothing](ctx, s.operation, s.at(), activities.NetworkUnwire,
		network.UnwireIn{Server: s.server, Ports: ports})
	return err
}

func (s *standing) ensureNetworks(ctx workflow.Context, ports []manifest.Port) error {
	_, err := call[activities.Nothing](ctx, s.operation, s.at(), activities.NetworkEnsure,
		network.EnsureIn{Server: s.server, Ports: ports})
	return err
}

func (s *standing) start(ctx workflow.Context, in domain.StartIn) error {
	_, err := call[domain.StartOut](ctx, s.operation, s.at(), activities.DomainStart, in)
	return err
}

// connect puts ports on the wire; only then does the guest run.
func (s *standing) connect(ctx workflow.Context, ports []manifest.Port) error {
	if _, err := call[activities.Nothing](ctx, s.operation, s.at(), activities.NetworkWire,
		network.WireIn{Server: s.server, Ports: ports}); err != nil {
		return err
	}
	if _, err := call[activities.Nothing](ctx, s.operation, s.at(), activities.DomainResume,
		domain.ResumeIn{Server: s.server}); err != nil {
		return err
	}
	s.off = false
	return nil
}

// powerOn brings the guest up as a record has it, whatever it runs as now.
func (s *standing) powerOn(ctx workflow.Context, rec manifest.Record, spec manifest.ServerSpec) error {
	if err := s.ensureNetworks(ctx, rec.Status.Ports); err != nil {
		return err
	}
	if err := s.start(ctx, domain.StartOf(rec, spec)); err != nil {
		return err
	}
	return s.connect(ctx, rec.Status.Ports)
}

// commit writes what the server is from now on. It is the point of no return: a cancel that
// comes with it comes too late, and nothing is undone any more.
func (s *standing) commit(ctx workflow.Context, status manifest.Status) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	free, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	spec, err := json.Marshal(s.in.Spec)
	if err != nil {
		return errs.NewPermanent(s.server.Ref(), "encode its spec", err, "report this with the manifest")
	}
	in := state.FinishIn{
		Kind: manifest.KindServer, Name: s.server.Name, UID: s.server.UID, Status: status, Spec: spec, Metadata: s.in.Metadata,
	}
	if _, err := call[activities.Nothing](free, s.operation, onControl(quickTimeout), activities.StateFinish, in); err != nil {
		return err
	}
	s.undos = nil
	s.rec.Status = status
	return nil
}
