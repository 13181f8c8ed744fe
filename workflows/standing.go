package workflows

import (
	"encoding/json"
	"errors"
	"slices"

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
	s.add(stepRecord, s.settleUndone)
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
	s.was, s.rec, s.off = rec, rec, rec.Status.Off()
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

// settle writes the record as it was, with how the guest is now, at the end.
func (s *standing) settle(ctx workflow.Context) error {
	s.was.Status.Conditions = finished(s.was.Status.Conditions)
	return s.finishRecord(ctx, manifest.KindServer, s.settled(s.was))
}

// settleUndone is settle for an operation that could not go on. The record says why, unless
// it was refused before it began.
func (s *standing) settleUndone(ctx workflow.Context) error {
	if s.was.Metadata.UID == "" {
		return nil
	}
	rec := s.settled(s.was)
	if s.undoing != nil && s.step(stepRecord).State == StepDone {
		text := s.Progress.Operation + " failed: " + reason(s.undoing)
		if len(s.stuck) > 0 {
			text += "; and not all of it could be taken back: " + s.stuck.Error()
		}
		rec.Status.Conditions = append(finished(rec.Status.Conditions), unfinished(ctx, manifest.ReasonFailed, text))
	}
	return s.finishRecord(ctx, manifest.KindServer, rec)
}

// unfinished is the condition of a server whose last operation did not do what it was to.
func unfinished(ctx workflow.Context, why, message string) manifest.Condition {
	return manifest.Condition{Type: manifest.ConditionUnfinished, Status: true, Reason: why, Message: message, Since: workflow.Now(ctx)}
}

// finished are conditions after an operation that did what it was to.
func finished(all []manifest.Condition) []manifest.Condition {
	return slices.DeleteFunc(slices.Clone(all), func(c manifest.Condition) bool {
		return c.Type == manifest.ConditionUnfinished && c.Reason != manifest.ReasonBuildLost
	})
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
	return s.unwire(ctx, joined(s.was.Status.Ports, s.ports))
}

// joined are the ports of both lists, each once, by their NICs' names.
func joined(a, b []manifest.Port) []manifest.Port {
	all := slices.Clone(a)
	for _, p := range b {
		if !hasPort(a, p.Name) {
			all = append(all, p)
		}
	}
	return all
}

func hasPort(ports []manifest.Port, name string) bool {
	return slices.ContainsFunc(ports, func(p manifest.Port) bool { return p.Name == name })
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

// prune deletes the server's seeds but one.
func (s *standing) prune(ctx workflow.Context, keep string) error {
	_, err := call[activities.Nothing](ctx, s.operation, s.at(), activities.SeedPrune, seed.PruneIn{Server: s.server, Keep: keep})
	return err
}

// connect puts the started guest's ports on the wire and lets it run.
func (s *standing) connect(ctx workflow.Context, in domain.StartIn) error {
	err := s.letRun(ctx, in)
	if err == nil {
		s.off = false
	}
	return err
}

// powerOn brings the guest up as a record has it, whatever it runs as now.
func (s *standing) powerOn(ctx workflow.Context, rec manifest.Record, spec manifest.ServerSpec) error {
	if err := s.ensureNetworks(ctx, rec.Status.Ports); err != nil {
		return err
	}
	in := domain.StartOf(rec, spec)
	if err := s.start(ctx, in); err != nil {
		return err
	}
	return s.connect(ctx, in)
}

// runAsBefore brings the guest up as the operation found it, and, where that is refused for
// good, leaves it off: paused and unwired it would be neither Running nor Stopped.
func (s *standing) runAsBefore(ctx workflow.Context, spec manifest.ServerSpec) error {
	err := s.powerOn(ctx, s.was, spec)
	if err != nil && s.off && s.undoVersion >= undoTells {
		err = errors.Join(err, s.powerOff(ctx, 0))
	}
	return err
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
