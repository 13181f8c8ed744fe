package workflows

import (
	"slices"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/activities/sweep"
	"burrow.dev/burrow/manifest"
)

const (
	stepUnfinished = "look at records"
	stepSettleLost = "finish what was lost"
	stepHosts      = "look at hosts"
	stepState      = "look at addresses and keys"
	stepJudge      = "compare with earlier sightings"
	stepClear      = "remove what was left behind"
)

// Sweep makes the world and the records consistent: it finishes records whose operation is
// gone, and removes what carries burrow's mark and belongs to nobody any more, at its
// second sighting. What only a person can decide is noted.
func Sweep(ctx workflow.Context, in SweepIn) (SweepOut, error) {
	s := &sweeping{in: in}
	return s.runAs(ctx, NameSweep, IDSweep, sequence{
		step{stepUnfinished, s.unfinished},
		step{stepSettleLost, s.settleLost},
		step{stepHosts, s.hosts},
		step{stepState, s.state},
		step{stepJudge, s.judge},
		step{stepClear, s.clear},
	})
}

// Drift reports what a sweep would find, and changes nothing.
func Drift(ctx workflow.Context, in SweepIn) (SweepOut, error) {
	s := &sweeping{in: in}
	return s.runAs(ctx, NameDrift, IDDrift, sequence{
		step{stepUnfinished, s.unfinished},
		step{stepHosts, s.hosts},
		step{stepState, s.state},
		step{stepJudge, s.judge},
	})
}

// sweeping carries what one step found to the next.
type sweeping struct {
	*operation
	in    SweepIn
	lost  []sweep.Unfinished
	alive []string
	gone  []string // hosts that are declared lost: what is owed there is written down
	out   SweepOut
}

func (s *sweeping) runAs(ctx workflow.Context, name, id string, body node) (SweepOut, error) {
	op, err := begin(ctx, name, id, manifest.PhaseUpdating, body)
	if err != nil {
		return SweepOut{}, err
	}
	s.operation = op
	s.out.At = workflow.Now(ctx)
	describe(ctx, op, "", s.in.RequestedBy)
	if err := op.run(ctx, body); err != nil {
		return SweepOut{}, fail(err)
	}
	return s.out, nil
}

func (s *sweeping) unfinished(ctx workflow.Context) error {
	out, err := call[sweep.UnfinishedOut](ctx, s.operation, onControl(lookTimeout).within(sweepTimeout), activities.SweepUnfinished, sweep.UnfinishedIn{})
	if err != nil {
		return err
	}
	s.lost, s.alive, s.gone = out.Records, out.Alive, out.Lost
	for _, host := range out.Away {
		why := "its worker does not answer"
		if slices.Contains(s.gone, host) {
			why = "it was declared lost"
		}
		s.out.Away = append(s.out.Away, Away{Host: host, Why: why})
	}
	s.out.More += out.More
	for _, u := range s.lost {
		s.out.Settled = append(s.out.Settled, Settled{
			Ref: u.Ref(), Was: u.Was.Type, Phase: u.Phase, Since: u.Was.Since, What: planned(u),
		})
	}
	s.detail(ctx, stepUnfinished, "%d without an operation", len(s.lost)+out.More)
	return nil
}

// planned says what a sweep does about a record whose operation is gone.
func planned(u sweep.Unfinished) string {
	switch {
	case u.Phase == manifest.PhaseDeleting:
		return "a sweep deletes it to the end"
	case u.Kind != manifest.KindServer, u.Phase == manifest.PhaseProvisioning && u.Was.Type == NameProvisionServer:
		return "a sweep takes back what it had made and fails the record"
	}
	return "a sweep settles the record as its guest is"
}

// settleLost starts an operation for each such record and waits a while for all of them.
// One whose host is away would wait for it, and is left for a later sweep.
func (s *sweeping) settleLost(ctx workflow.Context) error {
	free, cancel := workflow.NewDisconnectedContext(ctx) // they outlive this workflow
	defer cancel()
	left := 0
	for i, u := range s.lost {
		row := &s.out.Settled[i]
		if u.Host != "" && !slices.Contains(s.alive, u.Host) && !slices.Contains(s.gone, u.Host) {
			row.What = "waits for host " + u.Host + ", which is away"
			continue
		}
		left++
		workflow.Go(free, func(ctx workflow.Context) {
			row.settle(ctx, u)
			left--
		})
	}
	s.detail(ctx, stepSettleLost, "%d records", left)
	_, err := workflow.AwaitWithTimeout(ctx, settleWait, func() bool { return left == 0 })
	return err
}

// settle runs the operation of one record to its end.
func (row *Settled) settle(ctx workflow.Context, u sweep.Unfinished) {
	row.What = "under way: burrow watch " + row.Ref
	ctx = workflow.WithChildOptions(ctx, childOptions(row.Ref, enumspb.PARENT_CLOSE_POLICY_ABANDON))
	var out SettleOut
	name, in := settlement(u)
	err := workflow.ExecuteChildWorkflow(ctx, name, in).Get(ctx, &out)
	switch {
	case temporal.IsWorkflowExecutionAlreadyStartedError(err):
		row.What = "another operation has begun meanwhile"
	case err != nil:
		row.What = reason(err)
	case u.Phase == manifest.PhaseDeleting:
		row.Done, row.What = true, "deleted to the end"
	case out.What == "":
		row.Done, row.What = true, "settled meanwhile"
	default:
		row.Done, row.What = true, out.What
	}
}

// settlement is the workflow that finishes a record.
func settlement(u sweep.Unfinished) (name string, in any) {
	if u.Phase == manifest.PhaseDeleting {
		remove := DeleteIn{Name: u.Name, RequestedBy: NameSweep}
		switch u.Kind {
		case manifest.KindNetwork:
			return NameDeleteNetwork, remove
		case manifest.KindVolume:
			return NameDeleteVolume, remove
		case manifest.KindImage:
			return NameDeleteImage, remove
		case manifest.KindPlaybook:
			return NameDeletePlaybook, remove
		}
		return NameDeleteServer, remove
	}
	settle := SettleIn{Kind: u.Kind, Name: u.Name, UID: u.UID, RequestedBy: NameSweep}
	if u.Kind == manifest.KindServer {
		return NameSettleServer, settle
	}
	return NameSettleResource, settle
}

// hosts looks at every living host, side by side. One that does not answer in time is said.
func (s *sweeping) hosts(ctx workflow.Context) error {
	looks := make([]sweep.LookOut, len(s.alive))
	failed := make([]error, len(s.alive))
	_ = sideBySide(ctx, len(s.alive), len(s.alive), func(ctx workflow.Context, i int) error {
		looks[i], failed[i] = call[sweep.LookOut](ctx, s.operation, onHost(s.alive[i], lookTimeout).within(lookTimeout), activities.SweepLookHost, sweep.LookIn{})
		return nil // that of one host says nothing of the others
	})
	if err := ctx.Err(); err != nil {
		return err
	}
	for i, host := range s.alive {
		if failed[i] != nil {
			s.out.Away = append(s.out.Away, Away{Host: host, Why: reason(failed[i])})
			continue
		}
		s.found(looks[i])
	}
	s.detail(ctx, stepHosts, "%d looked at, %d away", len(s.alive), len(s.out.Away))
	return nil
}

func (s *sweeping) found(look sweep.LookOut) {
	s.out.Findings = append(s.out.Findings, look.Findings...)
	s.out.More += look.More
}

func (s *sweeping) state(ctx workflow.Context) error {
	look, err := call[sweep.LookOut](ctx, s.operation, onControl(lookTimeout).within(sweepTimeout), activities.SweepLookState, sweep.LookIn{})
	if err != nil {
		return err
	}
	s.found(look)
	if most := sweep.FindingsMost; len(s.out.Findings) > most {
		s.out.More += len(s.out.Findings) - most
		s.out.Findings = s.out.Findings[:most]
	}
	return nil
}

func (s *sweeping) judge(ctx workflow.Context) error {
	in := sweep.JudgeIn{Findings: s.out.Findings, Remove: s.in.Remove, GraceSeconds: s.in.GraceSeconds}
	for _, a := range s.out.Away {
		in.Away = append(in.Away, a.Host)
	}
	out, err := call[sweep.JudgeOut](ctx, s.operation, onControl(lookTimeout).within(sweepTimeout), activities.SweepJudge, in)
	if err != nil {
		return err
	}
	s.out.Findings = out.Findings
	s.detail(ctx, stepJudge, "%d differences", len(out.Findings))
	return nil
}

// clear removes what is due: on the hosts first, so that an address is free only when its
// guest is gone. What etcd holds of an owner stays as long as anything of it is on a host.
func (s *sweeping) clear(ctx workflow.Context) error {
	for _, host := range s.alive {
		due := s.due(func(f sweep.Finding) bool { return f.OnHost && f.Host == host })
		s.clearBy(ctx, due, onHost(host, driverTimeout), activities.SweepClearHost, host)
	}
	there := map[string]bool{}
	for _, f := range s.out.Findings {
		if f.OnHost && f.Verdict != sweep.VerdictMended {
			there[f.UID] = true
		}
	}
	due := s.due(func(f sweep.Finding) bool { return !f.OnHost && !there[f.UID] })
	s.clearBy(ctx, due, onControl(lookTimeout), activities.SweepClearState, "etcd")
	return ctx.Err()
}

// due gives the indices of findings to be removed.
func (s *sweeping) due(match func(sweep.Finding) bool) []int {
	var all []int
	for i, f := range s.out.Findings {
		if f.Verdict == sweep.VerdictRemove && match(f) {
			all = append(all, i)
		}
	}
	return all
}

func (s *sweeping) clearBy(ctx workflow.Context, due []int, at target, activity, place string) {
	if len(due) == 0 {
		return
	}
	in := sweep.ClearIn{}
	where := map[string]int{}
	for _, i := range due {
		f := &s.out.Findings[i]
		in.Findings = append(in.Findings, *f)
		where[f.ID] = i
		f.Verdict, f.Next = sweep.VerdictNote, "it has an owner by now"
	}
	s.detail(ctx, stepClear, "%d on %s", len(due), place)
	out, err := call[sweep.ClearOut](ctx, s.operation, at.within(sweepTimeout), activity, in)
	if err != nil {
		for _, i := range due {
			f := &s.out.Findings[i]
			f.Verdict, f.Next, f.Error = sweep.VerdictWait, "the next sweep tries again", reason(err)
		}
		return
	}
	for _, f := range out.Findings {
		s.out.Findings[where[f.ID]] = f
	}
}
