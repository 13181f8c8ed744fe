package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	ucli "github.com/urfave/cli/v2"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/cli/follow"
	"burrow.dev/burrow/cli/render"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/temporalclient"
	"burrow.dev/burrow/workflows"
)

// queryTimeout bounds the question which step a busy resource is at: without a worker
// there is no answer, and the rest of the sentence is still worth saying.
const queryTimeout = 2 * time.Second

// detachFlag is shared by every command that starts an operation.
func detachFlag() ucli.Flag {
	return &ucli.BoolFlag{Name: "detach", Usage: "start the operation and return; `burrow watch` follows it"}
}

// queueFlag is shared by every command whose operation may wait behind an open one.
func queueFlag() ucli.Flag {
	return &ucli.BoolFlag{Name: "queue", Usage: "when the resource is busy, wait until its open operation has ended; the wait goes on without this command"}
}

// startOptions are those of every operation the CLI starts: its ID is its resource, and a
// second one at the same time is refused, never merged with the first.
func startOptions(id, summary string) client.StartWorkflowOptions {
	return client.StartWorkflowOptions{
		ID:                                       id,
		TaskQueue:                                activities.ControlQueue,
		WorkflowIDConflictPolicy:                 enumspb.WORKFLOW_ID_CONFLICT_POLICY_FAIL,
		WorkflowIDReusePolicy:                    enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		WorkflowExecutionErrorWhenAlreadyStarted: true,
		StaticSummary:                            summary,
	}
}

// start starts an operation on a resource; a busy resource answers with what is running.
func start(ctx context.Context, c client.Client, ref, summary, workflow string, in any) (follow.Target, error) {
	return startWith(ctx, c, startOptions(ref, summary), workflow, in, func() error { return busy(ctx, c, ref) })
}

// startWith starts a workflow; taken says why its ID is not to be had, nil when by now it is.
func startWith(ctx context.Context, c client.Client, opts client.StartWorkflowOptions, workflow string, in any, taken func() error) (follow.Target, error) {
	for {
		run, err := c.ExecuteWorkflow(ctx, opts, workflow, in)
		if err == nil {
			return follow.Target{ID: run.GetID(), RunID: run.GetRunID()}, nil
		}
		var already *serviceerror.WorkflowExecutionAlreadyStarted
		if !errors.As(err, &already) {
			return follow.Target{}, errs.NewTransient(workflows.ResourceOf(opts.ID), "start "+workflow, err)
		}
		if err := taken(); err != nil {
			return follow.Target{}, err
		}
	}
}

// begin starts an operation on a resource. With --queue one that finds the resource busy
// waits for its turn, in a workflow that goes on although we are gone.
func begin(c *ucli.Context, tc client.Client, ref Ref, summary string, op workflows.Operation) (follow.Target, error) {
	name, in := op.Workflow()
	t, err := start(c.Context, tc, ref.String(), summary, name, in)
	if err == nil || !c.Bool("queue") || codeOf(err) != ExitBusy {
		return t, err
	}
	return enqueue(c.Context, tc, summary+" when it is free", workflows.StartNextIn{Ref: ref.String(), Next: op, RequestedBy: requestedBy()})
}

// enqueue takes the one place in a resource's queue.
func enqueue(ctx context.Context, tc client.Client, summary string, in workflows.StartNextIn) (follow.Target, error) {
	opts := startOptions(workflows.NextID(in.Ref), summary)
	name, _ := in.Next.Workflow()
	opts.Memo = map[string]any{workflows.MemoNext: name}
	return startWith(ctx, tc, opts, workflows.NameStartNext, in, func() error {
		run, open, err := openRun(ctx, tc, opts.ID)
		if err != nil || !open {
			return err
		}
		return &ExitError{Code: ExitBusy, Err: fmt.Errorf("%s is busy, and %s waits for it already, since %s: one operation waits at a time. "+
			"Follow: burrow watch %s. Take it out: burrow cancel --queued %s",
			in.Ref, run.next, time.Since(run.since).Round(time.Second), in.Ref, in.Ref)}
	})
}

// running is the open run of an operation.
type running struct {
	follow.Target
	kind  string // workflow type
	since time.Time
	next  string // workflow type that a StartNext waits to start; words where none is named
}

// openRun gives the open run of a resource's operation, open false when there is none. A
// paused run is open: it keeps others out. Temporal not answering is an error, and says
// nothing about the resource.
func openRun(ctx context.Context, c client.Client, ref string) (run running, open bool, err error) {
	d, err := c.DescribeWorkflow(ctx, ref, "")
	var unknown *serviceerror.NotFound
	if errors.As(err, &unknown) {
		return running{}, false, nil
	}
	if err != nil {
		return running{}, false, errs.NewTransient(ref, "look for its operation", err)
	}
	if !temporalclient.IsOpen(d.Status) {
		return running{}, false, nil
	}
	run = running{Target: follow.Target{ID: ref, RunID: d.WorkflowExecution.RunID}, kind: d.WorkflowType.Name, since: d.WorkflowStartTime}
	run.next = "another operation" // where no memo says which
	if p := d.Memo.GetFields()[workflows.MemoNext]; p != nil {
		_ = converter.GetDefaultDataConverter().FromPayload(p, &run.next)
	}
	return run, true, nil
}

// busy says what runs on a resource, since when, and what can be done about it; nil when
// nothing does.
func busy(ctx context.Context, c client.Client, ref string) error {
	run, open, err := openRun(ctx, c, ref)
	if err != nil || !open {
		return err
	}
	where := ""
	qctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	var p workflows.Progress
	if v, err := c.QueryWorkflow(qctx, ref, "", workflows.QueryProgress); err == nil && v.Get(&p) == nil {
		for _, s := range p.Steps {
			if s.State == workflows.StepRunning || s.State == workflows.StepHeldHere || s.State == workflows.StepUndoing {
				where = fmt.Sprintf(", step %q", s.Name)
			}
		}
	}
	if p.Held != "" {
		return &ExitError{Code: ExitBusy, Err: fmt.Errorf("%s is held%s, and waits for you: %s. Go on: burrow retry %s. Queue after it: --queue. Give up: burrow abort %s",
			ref, where, strings.TrimPrefix(p.Held, ref+": "), ref, ref)}
	}
	return &ExitError{Code: ExitBusy, Err: fmt.Errorf("%s is busy: %s%s, started %s ago. Follow: burrow watch %s. Queue after it: --queue. Cancel it: burrow cancel %s",
		ref, run.kind, where, time.Since(run.since).Round(time.Second), ref, ref)}
}

// operate does something to the operation of each resource, then follows them all. One
// that is refused keeps none of the others from being done and followed.
func operate(c *ucli.Context, refs []Ref, do func(client.Client, Ref) (follow.Target, error)) error {
	return operateAll(c, refs, func(tc client.Client, ref Ref) ([]follow.Target, error) {
		t, err := do(tc, ref)
		return []follow.Target{t}, err
	})
}

// operateAll is operate for what may be more than one operation of a resource.
func operateAll(c *ucli.Context, refs []Ref, do func(client.Client, Ref) ([]follow.Target, error)) error {
	tc, err := openTemporal(c)
	if err != nil {
		return err
	}
	defer tc.Close()
	targets, refused := doEach(c.Context, refs, func(ref Ref) ([]follow.Target, error) { return do(tc, ref) })
	return together(append(refused, followed(c, tc, targets...))...)
}

// doEach does something to each resource, and gives what is to be followed and what was
// refused. It ends early only with ctx.
func doEach(ctx context.Context, refs []Ref, do func(Ref) ([]follow.Target, error)) (targets []follow.Target, refused []error) {
	for _, ref := range refs {
		more, err := do(ref)
		if err != nil {
			refused = append(refused, err)
		} else {
			targets = append(targets, more...)
		}
		if ctx.Err() != nil {
			break
		}
	}
	return targets, refused
}

// followed shows operations until they end, and turns their end into the exit code.
func followed(c *ucli.Context, tc client.Client, targets ...follow.Target) error {
	if len(targets) == 0 {
		return nil
	}
	if c.Bool("detach") {
		for _, t := range targets {
			fmt.Fprintf(c.App.Writer, "%s: follow it with `burrow watch %s`\n", watched(t.ID), watched(t.ID))
		}
		return nil
	}
	view := operationRenderer(c)
	ctx, stop := whileRead(c.Context, c.App.Writer)
	outcomes, err := follow.Run(ctx, tc, targets, view.Update)
	stop()
	if cerr := view.Close(); err == nil {
		err = cerr
	}
	if errors.Is(err, context.Canceled) {
		fmt.Fprintf(c.App.ErrWriter, "stopped following; the operation goes on. Come back with `burrow watch %s`, stop it with `burrow cancel %s`\n",
			shownID(outcomes), shownID(outcomes))
		return &ExitError{Code: ExitStopped}
	}
	if err != nil {
		return errs.New(errs.Transient, shownID(outcomes), "follow", err, "it goes on without us: come back with `burrow watch "+shownID(outcomes)+"`")
	}
	return verdict(outcomes)
}

func operationRenderer(c *ucli.Context) render.Renderer {
	if output(c) == "json" {
		return render.NewJSON(c.App.Writer)
	}
	return render.New(c.App.Writer, stdoutIsTerminal(c))
}

// watched is what `burrow watch` takes for an operation: its resource.
func watched(id string) string { return workflows.ResourceOf(id) }

// shownID is the operation a person would name: the first that is not an apply.
func shownID(outcomes []follow.Outcome) string {
	for _, o := range outcomes {
		if o.Kind != workflows.NameApplyDocuments && o.Kind != workflows.NameStartNext {
			return o.ID
		}
	}
	if len(outcomes) > 0 {
		return watched(outcomes[0].ID)
	}
	return ""
}

// nameOf is the name in an operation's ID.
func nameOf(id string) string {
	_, name, _ := strings.Cut(workflows.ResourceOf(id), "/")
	return name
}
