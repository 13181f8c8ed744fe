package workflows

import (
	"go.temporal.io/sdk/workflow"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/activities/lost"
	"burrow.dev/burrow/manifest"
)

const (
	stepDeclare = "declare lost"
	stepTell    = "tell operations"
)

// LoseHost declares that a host does not come back. Operations that wait for it end: what
// they would have removed there is written down, and the host does it first if it comes
// back after all. Nothing is moved. A cancel does not stop it.
func LoseHost(ctx workflow.Context, in LoseHostIn) (LoseHostOut, error) {
	l := &losing{in: in}
	body := sequence{
		step{stepDeclare, l.declare},
		step{stepTell, l.tell},
	}
	op, err := begin(ctx, NameLoseHost, manifest.Ref(manifest.KindHost, in.Host), manifest.PhaseUpdating, body)
	if err != nil {
		return LoseHostOut{}, err
	}
	l.operation = op
	describe(ctx, op, "", in.RequestedBy, searchHost.ValueSet(in.Host))
	if err := op.runToEnd(ctx, body); err != nil {
		return LoseHostOut{}, fail(err)
	}
	op.phase(ctx, manifest.PhaseLost)
	return l.out, nil
}

// losing is a host that is being declared lost.
type losing struct {
	*operation
	in  LoseHostIn
	out LoseHostOut
}

func (l *losing) declare(ctx workflow.Context) error {
	out, err := call[lost.DeclareOut](ctx, l.operation, onControl(quickTimeout), activities.LostDeclare,
		lost.DeclareIn{Host: l.in.Host, By: l.in.RequestedBy, At: workflow.Now(ctx)})
	l.out.Since = out.Since
	return err
}

func (l *losing) tell(ctx workflow.Context) error {
	out, err := call[lost.TellOut](ctx, l.operation, onControl(lookTimeout), activities.LostTell, lost.TellIn{Host: l.in.Host})
	l.out.Servers, l.out.Told = out.Servers, out.Told
	l.detail(ctx, stepTell, "%d servers there, %d open operations told", len(out.Servers), len(out.Told))
	return err
}
