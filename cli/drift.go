package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	ucli "github.com/urfave/cli/v2"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"burrow.dev/burrow/activities/sweep"
	"burrow.dev/burrow/cli/follow"
	"burrow.dev/burrow/cli/render"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/workflows"
)

// driftCommand reports what differs between the records and the world.
func driftCommand() *ucli.Command {
	return &ucli.Command{
		Name: "drift", Category: categoryOperations, Usage: "list what differs between the records and the hosts, and what a sweep would do about it",
		ArgsUsage: "[KIND/NAME ...]",
		Description: "Compares records, domains, volumes, seeds, ports, networks, addresses, reservations, claims and keys of\n" +
			"every host that answers. Changes nothing, but remembers what it saw. Exit code 0: nothing differs; 3: something does.",
		Flags: []ucli.Flag{outputFlag("table", "json")},
		Action: func(c *ucli.Context) error {
			var refs []Ref
			if c.NArg() > 0 {
				var err error
				if refs, err = resourceArgs(c, 0); err != nil {
					return err
				}
			}
			out, err := lookAround(c, workflows.IDDrift, workflows.NameDrift, workflows.SweepIn{
				GraceSeconds: workflows.DefaultGraceSeconds, RequestedBy: requestedBy(),
			}, false)
			if err != nil {
				return err
			}
			out = only(out, refs)
			if err := printSweep(c, out, "nothing differs"); err != nil {
				return err
			}
			if !out.Clean() {
				return &ExitError{Code: ExitDiffers}
			}
			return nil
		},
	}
}

// sweepCommand mends what a drift report lists.
func sweepCommand() *ucli.Command {
	return &ucli.Command{
		Name: "sweep", Category: categoryOperations, Usage: "finish what lost operations left, and remove what belongs to nobody",
		Description: "It runs by itself every 15 minutes. A record whose operation is gone is settled; what carries burrow's mark\n" +
			"and has no record is reported at the first sighting, and removed at the second, at least the grace later.\n" +
			"Guests and disks of a server that burrow does not know to be deleted stay, until --remove names their owner.\n" +
			"Exit code 0 when the sweep has ended, whatever it found.",
		Flags: []ucli.Flag{
			&ucli.StringSliceFlag{Name: "remove", Usage: "remove for good what is left of this `OWNER` (its uid, or the first 8 digits of it, as burrow drift shows), disks included; may be repeated"},
			&ucli.DurationFlag{Name: "grace", Value: workflows.DefaultGraceSeconds * time.Second, Usage: "`TIME` between the first sighting of a thing and its removal, at least"},
			&ucli.BoolFlag{Name: "yes", Aliases: []string{"y"}, Usage: "do not ask"},
			outputFlag("table", "json"),
		},
		Action: func(c *ucli.Context) error {
			grace := c.Duration("grace")
			if grace < leastGrace {
				return usageErrorf(c, "--grace is %s; it is at least %s: what has just begun must not be taken for a leftover", grace, leastGrace)
			}
			words := c.StringSlice("remove")
			for _, w := range words {
				if len(w) < leastOwner {
					return usageErrorf(c, "--remove %s: name the owner's uid, or at least its first %d digits, as burrow drift shows them", w, leastOwner)
				}
			}
			if len(words) > 0 && !c.Bool("yes") {
				ok, err := confirm(c, "Remove all that is left of "+strings.Join(words, ", ")+", with its data?")
				if err != nil {
					return err
				}
				if !ok {
					fmt.Fprintln(c.App.Writer, "nothing removed")
					return nil
				}
			}
			out, err := lookAround(c, workflows.IDSweep, workflows.NameSweep, workflows.SweepIn{
				Remove: words, GraceSeconds: int(grace / time.Second), RequestedBy: requestedBy(),
			}, len(words) > 0)
			if err != nil {
				return err
			}
			return printSweep(c, out, "nothing to mend")
		},
	}
}

const (
	// leastGrace is longer than an activity goes on after its worker has lost Temporal.
	leastGrace = time.Minute
	// leastOwner is how much of a uid stands in a volume's name.
	leastOwner = 8
)

// lookAround runs a sweep or a drift report and gives its result. One that is under way
// already is joined, unless it must be ours.
func lookAround(c *ucli.Context, id, name string, in workflows.SweepIn, ours bool) (workflows.SweepOut, error) {
	var out workflows.SweepOut
	tc, err := openTemporal(c)
	if err != nil {
		return out, err
	}
	defer tc.Close()
	o := startOptions(id, id+" of everything")
	o.WorkflowIDConflictPolicy, o.WorkflowExecutionErrorWhenAlreadyStarted = enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING, false
	if ours {
		o.WorkflowIDConflictPolicy, o.WorkflowExecutionErrorWhenAlreadyStarted = enumspb.WORKFLOW_ID_CONFLICT_POLICY_FAIL, true
	}
	run, err := tc.ExecuteWorkflow(c.Context, o, name, in)
	if err != nil {
		return out, errs.New(errs.Transient, id, "start", err, "")
	}
	return followLook(c, tc, follow.Target{ID: id, RunID: run.GetRunID()})
}

// followLook shows the steps of a sweep on a terminal only: what counts is the result.
func followLook(c *ucli.Context, tc client.Client, t follow.Target) (out workflows.SweepOut, err error) {
	update, end := func([]render.Operation) {}, func() error { return nil }
	if output(c) != "json" && stdoutIsTerminal(c) {
		view := operationRenderer(c)
		update, end = view.Update, view.Close
	}
	outcomes, err := follow.Run(c.Context, tc, []follow.Target{t}, update)
	if cerr := end(); err == nil {
		err = cerr
	}
	if errors.Is(err, context.Canceled) {
		fmt.Fprintf(c.App.ErrWriter, "stopped following; the %s goes on\n", t.ID)
		return out, &ExitError{Code: ExitStopped}
	}
	if err != nil {
		return out, errs.NewTransient(t.ID, "follow", err)
	}
	for _, o := range outcomes {
		if o.ID != t.ID {
			continue
		}
		if o.Status != enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED {
			return out, &ExitError{Code: ExitFailed, Err: fmt.Errorf("%s: %s", t.ID, o.Message)}
		}
		if err := json.Unmarshal(o.Result, &out); err != nil {
			return out, errs.NewPermanent(t.ID, "read its result", err, "use the same version of burrow as the workers")
		}
	}
	return out, nil
}

// only keeps what is about some resources.
func only(out workflows.SweepOut, refs []Ref) workflows.SweepOut {
	if len(refs) == 0 {
		return out
	}
	named := func(text string) bool {
		return slices.ContainsFunc(refs, func(r Ref) bool { return r.String() == text })
	}
	out.Settled = slices.DeleteFunc(out.Settled, func(s workflows.Settled) bool { return !named(s.Ref) })
	out.Findings = slices.DeleteFunc(out.Findings, func(f sweep.Finding) bool { return !named(f.Ref) && !named(f.Object) })
	out.More = 0
	return out
}

func printSweep(c *ucli.Context, out workflows.SweepOut, nothing string) error {
	if output(c) == "json" {
		return printJSON(c.App.Writer, out)
	}
	return writeSweep(c.App.Writer, out, nothing, time.Now())
}

// writeSweep lists first what was lost, then what differs, then what was not looked at.
func writeSweep(w io.Writer, out workflows.SweepOut, nothing string, now time.Time) error {
	if out.Clean() {
		_, err := fmt.Fprintln(w, nothing)
		return err
	}
	var rows [][]string
	for _, s := range out.Settled {
		rows = append(rows, []string{s.Ref, "", fmt.Sprintf("it says %s, and its %s is gone", s.Phase, s.Was), age(s.Since, now), s.What})
	}
	for _, f := range out.Findings {
		next := f.Next
		if f.Error != "" {
			next = f.Error + "; " + next
		}
		rows = append(rows, []string{f.Object, f.Host, f.Problem, age(f.Since, now), next})
	}
	for _, a := range out.Away {
		rows = append(rows, []string{"host/" + a.Host, a.Host, "not looked at: " + a.Why, "", "looked at when it answers"})
	}
	if err := render.Table(w, []string{"OBJECT", "HOST", "WHAT IS WRONG", "SEEN", "SWEEP"}, rows); err != nil {
		return err
	}
	if out.More > 0 {
		_, err := fmt.Fprintf(w, "and %d more, which the next sweep looks at\n", out.More)
		return err
	}
	return nil
}
