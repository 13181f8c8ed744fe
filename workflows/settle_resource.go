package workflows

import (
	"go.temporal.io/sdk/workflow"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/activities/ipam"
	"burrow.dev/burrow/activities/place"
	"burrow.dev/burrow/activities/state"
	"burrow.dev/burrow/activities/volume"
	"burrow.dev/burrow/manifest"
)

// SettleResource takes back a network, volume, image or Playbook whose operation ended before it was
// Ready for the first time, and says so in its record. What was deleted is deleted again
// by its own workflow instead. A cancel does not stop it.
func SettleResource(ctx workflow.Context, in SettleIn) (SettleOut, error) {
	s := &leftover{in: in}
	ref := manifest.Ref(in.Kind, in.Name)
	body := sequence{
		step{stepRecord, s.record},
		step{"take back", s.takeBack},
		step{"release host", s.release},
		step{stepFinish, s.finish},
	}
	op, err := begin(ctx, NameSettleResource, ref, manifest.PhaseUpdating, body)
	if err != nil {
		return SettleOut{}, err
	}
	s.operation = op
	describe(ctx, op, "", in.RequestedBy)
	if err := op.runToEnd(ctx, body); err != nil {
		return SettleOut{}, fail(err)
	}
	return SettleOut{What: s.what}, nil
}

// leftover carries the record of what was not finished.
type leftover struct {
	*operation
	in   SettleIn
	rec  manifest.Record
	was  manifest.Operation
	what string
}

func (s *leftover) record(ctx workflow.Context) error {
	out, err := call[state.AdoptOut](ctx, s.operation, onControl(quickTimeout), activities.StateAdopt, state.AdoptIn{
		Kind: s.in.Kind, Name: s.in.Name, UID: s.in.UID, Operation: currentOperation(ctx, NameSettleResource),
	})
	s.rec, s.was = out.Record, out.Was
	s.operation.lose(out.Lost...)
	return err
}

func (s *leftover) missing() bool { return s.rec.Metadata.UID == "" }

func (s *leftover) takeBack(ctx workflow.Context) error {
	if s.missing() {
		return nil
	}
	var err error
	switch {
	case s.in.Kind == manifest.KindNetwork:
		_, err = call[activities.Nothing](ctx, s.operation, onControl(quickTimeout), activities.IPAMForgetNetwork,
			ipam.ForgetNetworkIn{Name: s.in.Name, UID: s.in.UID})
	case s.in.Kind == manifest.KindVolume && s.rec.Status.Host != "":
		// It was never Ready: no server has had it, and nothing is on it.
		_, err = call[activities.Nothing](ctx, s.operation, onHost(s.rec.Status.Host, driverTimeout), activities.VolumeDelete,
			volume.DeleteIn{Name: s.in.Name, UID: s.in.UID})
	}
	return err
}

func (s *leftover) release(ctx workflow.Context) error {
	if s.missing() || s.in.Kind == manifest.KindNetwork || s.in.Kind == manifest.KindPlaybook {
		return nil
	}
	_, err := call[activities.Nothing](ctx, s.operation, onControl(quickTimeout), activities.PlaceRelease,
		place.ReleaseIn{UID: s.in.UID})
	return err
}

func (s *leftover) finish(ctx workflow.Context) error {
	if s.missing() {
		return nil
	}
	s.what = "what it had made was taken back, and its record says Failed; apply it again"
	if s.in.Kind == manifest.KindPlaybook {
		s.what = "its record says Failed, since nobody knows how far it got; apply it again"
	}
	s.phase(ctx, manifest.PhaseFailed)
	_, err := call[activities.Nothing](ctx, s.operation, onControl(quickTimeout), activities.StateFail, state.FailIn{
		Kind: s.in.Kind, Name: s.in.Name, UID: s.in.UID, Message: lostMessage(manifest.Ref(s.in.Kind, s.in.Name), s.was),
	})
	return err
}
