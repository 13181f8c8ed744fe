package faults

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/manifest"
	"burrow.dev/burrow/workflows"
)

// TestAnApplyEndsWhateverHappens disturbs one server of an apply: what else it builds is
// ready at the end, whatever becomes of that server.
func TestAnApplyEndsWhateverHappens(t *testing.T) {
	f := smallField(t, 2)
	provisioning := powers()[0]
	f.learn([]operation{provisioning, others()[0], others()[2]})
	for _, at := range []place{
		{step: "record", activity: activities.StateBegin},
		{step: "allocate addresses", activity: activities.IPAMAllocate},
		{step: "define and start", activity: activities.DomainStart},
		{step: "finish", activity: activities.StateFinish},
	} {
		for _, name := range []string{"kill before", "kill after", "transient", "permanent", "Temporal and etcd killed", "cancel before"} {
			fault := faults[slices.IndexFunc(faults, func(f fault) bool { return f.name == name })]
			end, ok := applies(provisioning, provisioning.at(at.activity), fault)
			require.True(t, ok)
			c := cell{op: operation{name: "apply", kind: manifest.KindServer}, at: at, fault: fault, end: end}
			t.Run(c.String(), func(t *testing.T) {
				f.await(func(ctx context.Context) error { return f.applyOf(ctx, c) })
				f.clean()
			})
		}
	}
}

// at is the operation's step that runs an activity.
func (o operation) at(activity string) place {
	return o.steps[slices.IndexFunc(o.steps, func(p place) bool { return p.activity == activity })]
}

// applyOf is one cell: an apply of a server that is disturbed, of one that is not, and of
// a network and a volume that neither uses.
func (f *field) applyOf(ctx context.Context, c cell) error {
	disturbed, calm := f.subject(manifest.KindServer, f.slots[0]), f.subject(manifest.KindServer, f.slots[1])
	network, volume := f.subject(manifest.KindNetwork, f.slots[0]), f.subject(manifest.KindVolume, f.slots[0])
	c.op.start = func(ctx context.Context, s *subject) (client.WorkflowRun, error) {
		var in workflows.ApplyIn
		for _, one := range []*subject{network, volume, calm, disturbed} {
			doc, err := one.document(ctx)
			if err != nil {
				return nil, err
			}
			in.Documents = append(in.Documents, doc)
		}
		return s.begin(ctx, "apply/"+s.name, workflows.NameApplyDocuments, in)
	}
	end, err := c.strike(ctx, disturbed)
	if err != nil {
		return err
	}
	if cancelled := c.end == endsGone && c.fault.act != nil; cancelled != (end != nil) {
		return fmt.Errorf("the apply ended: %w", end)
	}
	if err := f.orders.forget(disturbed.ref()); err != nil {
		return err
	}
	if err := f.worker.ready(ctx); err != nil {
		return err
	}
	worlds := map[*subject]string{disturbed: worldRunning, calm: worldRunning, network: worldNetwork, volume: worldVolume}
	err = untilEvery(ctx, censusEvery, "the expected worlds", func() error {
		census, err := f.census(ctx)
		if err != nil {
			return err
		}
		for s, world := range worlds {
			check := cell{op: operation{kind: s.kind, ends: world}, end: endsWell}
			switch {
			case s == disturbed:
				check.end = c.end
			case end != nil: // all of a cancelled apply is cancelled, but for what was done
				if _, ok, err := s.record(ctx); err != nil || !ok {
					check.end = endsGone
				}
			}
			if err := f.check(ctx, check, s, census); err != nil {
				return fmt.Errorf("%s: %w", s.ref(), err)
			}
		}
		return nil
	})
	var removed []error
	for _, s := range []*subject{disturbed, calm, network, volume} {
		removed = append(removed, s.remove(ctx))
	}
	return errors.Join(append(removed, err)...)
}

// document is the subject as an apply has it.
func (c *subject) document(ctx context.Context) (workflows.Document, error) {
	doc := workflows.Document{Ref: c.ref()}
	switch c.kind {
	case manifest.KindNetwork:
		in, err := c.networkIn(ctx)
		doc.Network = &in
		return doc, err
	case manifest.KindVolume:
		in, err := c.volumeIn(ctx)
		doc.Volume = &in
		return doc, err
	}
	in, err := c.provisionIn(ctx)
	doc.Server = &in
	return doc, err
}
