package workflows

import (
	"fmt"
	"slices"
	"strings"

	"go.temporal.io/sdk/workflow"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/activities/domain"
	"burrow.dev/burrow/manifest"
)

const stepFit = "fit processors"

func (u *update) fits() bool { return u.change.Fit && !u.restart && !u.off }

// fit gives the running guest its processors, as far as it takes them, and looks whether it
// has what is declared: a change may also lead back to that.
func (u *update) fit(ctx workflow.Context) error {
	u.add(stepFit, func(ctx workflow.Context) error {
		err := u.fitTo(ctx, u.old)
		if u.unfit {
			u.was.Status.Conditions = u.machineCondition(ctx, u.was.Status.Conditions)
		}
		return err
	})
	return u.fitTo(ctx, u.in.Spec)
}

func (u *update) fitTo(ctx workflow.Context, spec manifest.ServerSpec) error {
	out, err := call[domain.FitOut](ctx, u.operation, u.at(), activities.DomainFit,
		domain.FitIn{Server: u.server, CPU: spec.CPU, Memory: spec.Memory})
	if err != nil {
		return err
	}
	u.unfit = out.Running && (out.CPU != spec.CPU || out.Memory != spec.Memory)
	u.detail(ctx, stepFit, "the guest has %d vCPU, %d MiB", out.CPU, out.Memory)
	return nil
}

// Reasons of a condition that says that a restart is needed.
const (
	restartNICs    = "NICs"
	restartMachine = "Updated"
)

// conditions say whether the guest still is what it was before: the record's own, with those
// of them that the operation has changed.
func (u *update) conditions(ctx workflow.Context) []manifest.Condition {
	kept := u.was.Status.Conditions
	if u.restart || u.off {
		return without(kept, manifest.ConditionRestart)
	}
	return u.machineCondition(ctx, u.nicsCondition(ctx, kept))
}

// nicsCondition names the NICs that the guest has and should not have: those that it kept
// before and has not been given again or let go since, and those that it keeps now.
func (u *update) nicsCondition(ctx workflow.Context, all []manifest.Condition) []manifest.Condition {
	names := slices.Clone(u.unable)
	if i := slices.IndexFunc(all, restartFor(restartNICs)); i >= 0 {
		if len(all[i].Objects) == 0 && len(names) == 0 {
			return all // of an earlier version, which did not write down their names
		}
		for _, name := range all[i].Objects {
			if !slices.Contains(u.change.AddNICs, name) && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	all = slices.DeleteFunc(slices.Clone(all), restartFor(restartNICs))
	if len(names) == 0 {
		return all
	}
	slices.Sort(names)
	needed := u.restartNeeded(ctx, restartNICs, fmt.Sprintf("the guest still has %s, connected to nothing, until `burrow restart %s`",
		strings.Join(names, ", "), u.server.Name))
	needed.Objects = names
	return append(all, needed)
}

// machineCondition says whether the guest has the processors and memory that are declared.
func (u *update) machineCondition(ctx workflow.Context, all []manifest.Condition) []manifest.Condition {
	if !u.unfit && !u.change.Machine {
		return all
	}
	all = slices.DeleteFunc(slices.Clone(all), restartFor(restartMachine))
	if !u.unfit {
		return all
	}
	return append(all, u.restartNeeded(ctx, restartMachine,
		"the guest has the processors and memory that are declared after `burrow restart "+u.server.Name+"`"))
}

// restartFor matches the condition that a restart is needed for a reason.
func restartFor(reason string) func(manifest.Condition) bool {
	return func(c manifest.Condition) bool { return c.Type == manifest.ConditionRestart && c.Reason == reason }
}

func (u *update) restartNeeded(ctx workflow.Context, reason, message string) manifest.Condition {
	return manifest.Condition{Type: manifest.ConditionRestart, Status: true, Reason: reason, Since: workflow.Now(ctx), Message: message}
}
