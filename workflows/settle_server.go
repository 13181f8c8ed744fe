package workflows

import (
	"cmp"
	"encoding/json"

	"go.temporal.io/sdk/workflow"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/activities/domain"
	"burrow.dev/burrow/activities/state"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
)

const stepLook = "look at domain"

// SettleServer finishes what an operation of a server left when it ended without
// finishing: its record says Provisioning, Updating or Held, and no workflow is open. A
// server that was never Running is taken back, and its record says Failed; one that has a
// guest of value (it was Running before, or was held) is kept, and its record says how it
// is. Its ID is the server's, so that nobody else works on it. A cancel does not stop it.
func SettleServer(ctx workflow.Context, in SettleIn) (SettleOut, error) {
	s := &settling{in: in}
	body := sequence{
		step{stepRecord, s.record},
		step{stepLook, s.look},
		chosen(s.rest),
		step{stepFinish, s.finish},
	}
	op, err := begin(ctx, NameSettleServer, "server/"+in.Name, manifest.PhaseUpdating, body)
	if err != nil {
		return SettleOut{}, err
	}
	s.operation = op
	describe(ctx, op, in.Name, in.RequestedBy)
	if err := op.runToEnd(ctx, body); err != nil {
		return SettleOut{}, s.failed(ctx, err)
	}
	return SettleOut{What: s.what}, nil
}

// settling carries what is known of the server.
type settling struct {
	*operation
	in     SettleIn
	rec    manifest.Record
	was    manifest.Operation
	spec   manifest.ServerSpec
	server activities.Server
	found  domain.LookOut
	what   string
}

func (s *settling) record(ctx workflow.Context) error {
	out, err := call[state.AdoptOut](ctx, s.operation, onControl(quickTimeout), activities.StateAdopt, state.AdoptIn{
		Kind: manifest.KindServer, Name: s.in.Name, UID: s.in.UID, Operation: currentOperation(ctx, NameSettleServer),
	})
	if err != nil || !out.Found {
		return err
	}
	s.rec, s.was = out.Record, out.Was
	s.lose(out.Lost...)
	s.server = activities.Server{Name: s.in.Name, UID: s.in.UID}
	s.detail(ctx, stepRecord, "%s, left by %s", s.rec.Status.Phase, s.was.Type)
	if err := json.Unmarshal(s.rec.Spec, &s.spec); err != nil {
		return errs.NewPermanent(s.server.Ref(), "read its record", err, "restore the record from a backup")
	}
	return nil
}

// missing: there is nothing to settle (any more).
func (s *settling) missing() bool { return s.server.UID == "" }

func (s *settling) look(ctx workflow.Context) (err error) {
	if s.missing() || s.rec.Status.Host == "" {
		s.skip(ctx, stepLook, "it never reached a host")
		return nil
	}
	s.found, err = call[domain.LookOut](ctx, s.operation, onHost(s.rec.Status.Host, driverTimeout), activities.DomainLook, domain.LookIn{Server: s.server})
	if err == nil && s.hosts.lost[s.rec.Status.Host] {
		// Nobody can look: it is taken to be there, and its host says how it is when it is back.
		s.found = domain.LookOut{Found: true, State: "running"}
		s.detail(ctx, stepLook, "its host %s was declared lost", s.rec.Status.Host)
		return nil
	}
	s.detail(ctx, stepLook, "%s", s.guest())
	return err
}

func (s *settling) guest() string {
	if !s.found.Found {
		return "there is none"
	}
	return s.found.State
}

// built reports whether the server had been Running when the operation that is gone began:
// only ProvisionServer begins with none.
func (s *settling) built() bool { return s.was.Type != "" && s.was.Type != NameProvisionServer }

// kept reports whether the server stays: it was Running before, or a person was to decide
// about a guest that stands.
func (s *settling) kept() bool {
	switch s.rec.Status.Phase {
	case manifest.PhaseProvisioning:
		return s.built()
	case manifest.PhaseHeld:
		return s.built() || s.found.Found
	}
	return true
}

// rest is what is to be done, now that the record and the guest are known.
func (s *settling) rest() node {
	switch {
	case s.missing():
		return sequence{}
	case !s.kept():
		d := &deletion{operation: s.operation, rec: s.rec, spec: s.spec, server: s.server}
		return d.parts()
	case s.found.State == "paused" && s.found.Reason != "ioerror":
		// It was started and not wired yet: nothing of it has left it so far.
		p := s.power()
		return sequence{step{stepNetworks, p.networks}, step{stepDomain, p.start}, step{stepWire, p.wire}}
	case !s.found.Found || s.found.State == "shutoff":
		return sequence{step{stepUnwire, s.power().unplug}}
	}
	return sequence{}
}

// power is the server as an operation that changes its power has it.
func (s *settling) power() *power {
	p := &power{}
	p.operation = s.operation
	_ = p.take(s.rec) // its spec was read in record already
	return p
}

func (s *settling) finish(ctx workflow.Context) error {
	if s.missing() {
		s.skip(ctx, stepFinish, "settled meanwhile")
		return nil
	}
	if !s.kept() {
		s.what = "what it had made was taken back, and its record says Failed; apply it again"
		s.phase(ctx, manifest.PhaseFailed)
		return s.fail(ctx, manifest.Status{})
	}
	status := s.rec.Status
	held := status.Phase == manifest.PhaseHeld
	status.Operation, status.Message = nil, ""
	status.Phase = manifest.PhaseRunning
	if !s.found.Found || s.found.State == "shutoff" || s.found.State == "crashed" {
		status.Phase = manifest.PhaseStopped
	}
	s.what = "its record says " + string(status.Phase) + ", as its guest is"
	lost := s.lostCondition(ctx, held)
	status.Conditions = append(finished(without(status.Conditions, manifest.ConditionAttention)), lost)
	s.what += "; " + lost.Message
	s.rec.Status = status
	s.phase(ctx, status.Phase)
	return s.finishRecord(ctx, manifest.KindServer, s.rec)
}

// lostCondition is the condition of a server that is kept, and whose operation was lost.
func (s *settling) lostCondition(ctx workflow.Context, held bool) manifest.Condition {
	text := "its " + cmp.Or(s.was.Type, "operation") + " was lost before its end"
	if held {
		text = "its " + s.was.Type + " was held, and is lost"
		if s.rec.Status.Message != "" {
			text += " (" + s.rec.Status.Message + ")"
		}
	}
	if s.built() {
		return unfinished(ctx, manifest.ReasonLost, text+"; ask for it again")
	}
	ref := s.server.Ref()
	return unfinished(ctx, manifest.ReasonBuildLost,
		text+"; mend it by hand and use it as it is, or build it anew: burrow delete "+ref+", then burrow apply")
}

func without(all []manifest.Condition, kind string) []manifest.Condition {
	var kept []manifest.Condition
	for _, c := range all {
		if c.Type != kind {
			kept = append(kept, c)
		}
	}
	return kept
}

func (s *settling) fail(ctx workflow.Context, left manifest.Status) error {
	_, err := call[activities.Nothing](ctx, s.operation, onControl(quickTimeout), activities.StateFail, state.FailIn{
		Kind: manifest.KindServer, Name: s.server.Name, UID: s.server.UID, Left: left, Message: lostMessage(s.server.Ref(), s.was),
	})
	return err
}

// lostMessage is the reason of a record whose operation is lost.
func lostMessage(ref string, was manifest.Operation) string {
	return errs.NewPermanent(ref, "build", errs.Reason("its operation %s was lost before it ended", was.Type), "apply it again: burrow apply -f FILE").Error()
}

// failed leaves a record that says what could not be done: Failed with what is left where
// the server was to be taken back, as its guest is where it is kept.
func (s *settling) failed(ctx workflow.Context, cause error) error {
	if s.missing() {
		return fail(cause)
	}
	free, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	free = workflow.WithValue(free, stepKey{}, stepUndo)
	var err error
	if s.kept() {
		err = s.finish(free)
	} else {
		_, err = call[activities.Nothing](free, s.operation, onControl(quickTimeout), activities.StateFail, state.FailIn{
			Kind: manifest.KindServer, Name: s.server.Name, UID: s.server.UID, Left: s.rec.Status, Message: reason(cause),
		})
	}
	if err != nil {
		return fail(errs.NewPermanent(s.Resource, "settle its record", errs.Reason("%s (after: %s)", reason(err), reason(cause)), "run `burrow delete "+s.Resource+"`"))
	}
	return fail(cause)
}
