package faults

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"burrow.dev/burrow/manifest"
	"burrow.dev/burrow/workflows"
)

// settleTime is how long repairs that go on by themselves (flows after a restart of Open
// vSwitch, a record after libvirt's news) may take.
const settleTime = 40 * time.Second

// verify compares what each cell left with what it must leave.
func (f *field) verify(ctx context.Context, out []outcome, subjects []*subject) {
	short, stop := context.WithTimeout(ctx, settleTime)
	defer stop()
	open := map[int]error{}
	_ = untilEvery(short, censusEvery, "the expected worlds", func() error {
		census, err := f.census(ctx)
		if err != nil {
			return err
		}
		clear(open)
		for i, o := range out {
			if o.err == nil {
				if err := f.check(ctx, o.cell, subjects[i], census); err != nil {
					open[i] = err
				}
			}
		}
		if len(open) > 0 {
			return errors.New("not yet")
		}
		return nil
	})
	for i, err := range open {
		out[i].err = err
	}
	for i, o := range out {
		if o.err == nil && slices.Contains([]ending{endsBack, endsTrue, endsOwing}, o.cell.end) {
			out[i].err = f.askAgain(ctx, o.cell, subjects[i])
		}
	}
}

// check compares the world of one cell.
func (f *field) check(ctx context.Context, c cell, s *subject, census []string) error {
	rec, ok, err := s.record(ctx)
	if err != nil {
		return err
	}
	if c.op.plays {
		if err := s.oneRun(c.end == endsWell); err != nil {
			return err
		}
	}
	mine := s.traces(census, f.before)
	if c.op.kind == manifest.KindImage && c.end != endsWell {
		mine = slices.DeleteFunc(mine, brought)
	}
	switch c.end {
	case endsWell:
		return compare(mine, f.worlds[c.op.ends])
	case endsGone:
		return compare(mine, nil)
	case endsFailed, endsOwing:
		if !ok || rec.Status.Phase != manifest.PhaseFailed || rec.Status.Message == "" {
			return fmt.Errorf("its record is not Failed with a reason: %+v", rec.Status)
		}
		if rec.Status.Operation != nil {
			return fmt.Errorf("its record says that %s goes on", rec.Status.Operation.Type)
		}
		if c.end == endsOwing {
			return nil
		}
		left := slices.DeleteFunc(mine, func(line string) bool {
			return strings.HasPrefix(line, "etcd: ") && strings.Contains(line, " phase=Failed operation=false host= ")
		})
		return compare(left, nil)
	case endsBack:
		return errors.Join(compare(mine, f.worlds[c.op.from]), s.truthful(rec, ok, census))
	case endsTrue, endsLeaving:
		return s.truthful(rec, ok, census)
	}
	return fmt.Errorf("no such end: %q", c.end)
}

// truthful checks that a record of something that was not built anew says how it is.
func (c *subject) truthful(rec manifest.Record, ok bool, census []string) error {
	if !ok {
		return errors.New("its record is gone")
	}
	if !rec.Status.Phase.Settled() || rec.Status.Operation != nil {
		return fmt.Errorf("its record is not settled: %s, operation %v", rec.Status.Phase, rec.Status.Operation)
	}
	if c.kind != manifest.KindServer || rec.Status.Phase == manifest.PhaseFailed {
		return nil
	}
	want := map[manifest.Phase]string{manifest.PhaseRunning: "running", manifest.PhaseStopped: "shut off"}[rec.Status.Phase]
	if !slices.Contains(census, "domain: "+c.name+" "+want) {
		var is []string
		for _, line := range census {
			if strings.HasPrefix(line, "domain: "+c.name) {
				is = append(is, line)
			}
		}
		return fmt.Errorf("its record says %s, libvirt says %q", rec.Status.Phase, is)
	}
	if saysWhatIsStuck(rec) {
		return nil
	}
	return asLibvirtHasIt(rec, census)
}

// saysWhatIsStuck: an undo was refused for good, and the record names it.
func saysWhatIsStuck(rec manifest.Record) bool {
	return slices.ContainsFunc(rec.Status.Conditions, func(c manifest.Condition) bool {
		return c.Type == manifest.ConditionUnfinished && strings.Contains(c.Message, "not all of it could be taken back: undo ")
	})
}

// askAgain runs the operation again, undisturbed.
func (f *field) askAgain(ctx context.Context, c cell, s *subject) error {
	if err := f.orders.forget(s.ref()); err != nil {
		return err
	}
	if c.end == endsOwing {
		return nil // the delete that follows is the test
	}
	if err := s.well(ctx, c.op.start); err != nil {
		return fmt.Errorf("asked again: %w", err)
	}
	// A guest that could not be put back is off, and a change leaves it as it is.
	if s.last.Status.Phase == manifest.PhaseStopped && c.op.ends != worldStopped && c.op.ends != worldPoorStopped {
		if err := s.well(ctx, power(workflows.PowerStart)); err != nil {
			return fmt.Errorf("started after it was asked again: %w", err)
		}
	}
	census, err := f.census(ctx)
	if err != nil {
		return err
	}
	want := c.op.ends
	if c.at.settled {
		want = cmp.Or(c.op.again, want)
	}
	if err := compare(s.traces(census, f.before), f.worlds[want]); err != nil {
		return fmt.Errorf("asked again: %w", err)
	}
	return nil
}
