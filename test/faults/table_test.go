package faults

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"syscall"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
	"burrow.dev/burrow/workflows"
)

// ending is the world that a cell must end in.
type ending string

const (
	endsWell   ending = "as if nothing had happened"
	endsFailed ending = "Failed with its reason, nothing left"
	endsGone   ending = "gone without a trace"
	// endsBack is endsTrue for a change of what stands: it is as it was before.
	endsBack ending = "as it was before; asking again works"
	// endsTrue: a settled record that says how things are; asking again works.
	endsTrue ending = "refused; the record is true; asking again works"
	// endsLeaving is endsTrue where asking again finds nothing to do.
	endsLeaving ending = "refused, naming what is left; the record is true; delete removes it"
	// endsOwing: what could not be removed is named, and a delete removes it.
	endsOwing ending = "Failed, naming what is left; delete removes it"
)

// fault is one column of the matrix.
type fault struct {
	name  string
	words string // for people
	order order
	// onFailure of the server's manifest; "" leaves the default (rollback).
	onFailure manifest.OnFailure
	// act is what the harness does while the operation runs; nil: it only waits.
	act func(ctx context.Context, c *subject, at place, run client.WorkflowRun) error
	// shared faults hit every operation of the installation, not only the cell's.
	shared bool
	// alone: nothing else may run beside it.
	alone bool
	// cluster: the state is in an etcd of three members.
	cluster bool
	// keys is the path of the key server that the server's manifest names.
	keys string
}

var faults = []fault{
	{name: "kill before", words: "the worker is killed (-9) before the step's side effect", order: order{Deed: killBefore, Times: 1}, shared: true},
	{name: "kill during", words: "the worker is killed (-9) at some moment of the step", order: order{Deed: killMiddle, Times: 1}, shared: true},
	{name: "kill after", words: "the worker is killed (-9) after the side effect, before it is reported", order: order{Deed: killAfter, Times: 1}, shared: true},
	{name: "transient", words: "the step fails three times with a passing error, once of them after its side effect", order: order{Deed: failBefore, Class: string(errs.Transient), Times: 3}},
	{name: "permanent", words: "the step is refused for good", order: order{Deed: failBefore, Class: string(errs.Permanent), Times: 1}},
	{name: "permanent after", words: "the step is refused for good after its side effect", order: order{Deed: failAfter, Class: string(errs.Permanent), Times: 1}},
	{name: "operator", words: "the step needs a person, and onFailure says rollback", order: order{Deed: failBefore, Class: string(errs.Operator), Times: 1}},
	{name: "held, retried", words: "the step needs a person: Held, everything kept; then burrow retry", order: order{Deed: failAfter, Class: string(errs.Operator), Times: 1}, onFailure: manifest.OnFailureHold, act: held(workflows.UpdateRetry, workflows.RetryIn{})},
	{name: "held, aborted", words: "the step needs a person: Held, everything kept; then burrow abort", order: order{Deed: failAfter, Class: string(errs.Operator), Times: 1}, onFailure: manifest.OnFailureHold, act: held(workflows.UpdateAbort, workflows.DecisionIn{})},
	{name: "held, cancelled", words: "the step needs a person: Held, everything kept; then burrow cancel", order: order{Deed: failAfter, Class: string(errs.Operator), Times: 1}, onFailure: manifest.OnFailureHold, act: held("cancel", nil)},
	{name: "held, skipped", words: "the playbook needs a person: Held, everything kept; then burrow skip", order: order{Deed: failAfter, Class: string(errs.Operator), Times: 1}, onFailure: manifest.OnFailureHold, act: held(workflows.UpdateSkip, workflows.DecisionIn{})},
	{name: "timeout", words: "the step acts, then says nothing until its time is over", order: order{Deed: hang, Times: 1}},
	{name: "heartbeat lost", words: "the worker is frozen after the side effect, and goes on while the step is tried again", order: order{Deed: freeze, Times: 1}, act: thaw, shared: true},
	{name: "cancel before", words: "burrow cancel as the step begins", order: order{Deed: waitBefore, Times: 1}, act: cancelThere},
	{name: "cancel after", words: "burrow cancel when the side effect has happened", order: order{Deed: waitAfter, Times: 1}, act: cancelThere},
	{name: "Temporal and etcd killed", words: "both are killed (-9) under the step, and start again", order: order{Deed: waitBefore, Times: 1}, act: disaster((*site).crashDevstack), shared: true},
	{name: "etcd leader killed", words: "of three members of etcd, the leader is killed (-9) under the step", order: order{Deed: waitBefore, Times: 1}, act: disaster((*site).crashLeader), shared: true, cluster: true},
	{name: "guest killed", words: "the guest's QEMU is killed (-9) after its start, before it runs", order: order{Deed: waitBefore, Times: 1}, act: killGuest},
	{name: "libvirtd killed", words: "libvirtd is killed (-9) under the step, and starts again", order: order{Deed: waitBefore, Times: 1}, act: disaster((*site).crashLibvirt), shared: true},
	{name: "Open vSwitch killed", words: "ovsdb-server and ovs-vswitchd are killed (-9) under the step, and start again with no flows", order: order{Deed: waitBefore, Times: 1}, act: disaster((*site).crashSwitch), shared: true},
	{name: "disk full", words: "the pool's disk is full, and onFailure says rollback", order: order{Deed: waitBefore, Times: 1}, act: diskFull, shared: true, alone: true},
	{name: "disk full, held", words: "the pool's disk is full: Held; then there is room, and burrow retry", order: order{Deed: waitBefore, Times: 1}, onFailure: manifest.OnFailureHold, act: diskFullThenRoom, shared: true, alone: true},
	{name: "key server 404", words: "the key server knows no such user", order: order{Deed: notice, Times: 1}, keys: "/404"},
	{name: "key server HTML", words: "the key server answers with a web page", order: order{Deed: notice, Times: 1}, keys: "/html"},
	{name: "key server 500", words: "the key server fails for a while", order: order{Deed: notice, Times: 1}, keys: "/500", act: keysLater},
	{name: "key server slow", words: "the key server takes seconds to answer", order: order{Deed: notice, Times: 1}, keys: "/slow", act: keysLater},
}

// cell is one element of the matrix.
type cell struct {
	op    operation
	at    place
	fault fault
	end   ending
	// broken: the operation is made to fail when everything is made, and the fault hits its undo.
	broken bool
}

func (c cell) String() string { return c.op.name + " | " + c.at.step + " | " + c.fault.name }

// applies gives the end of a cell; ok is false where the fault cannot happen.
func applies(op operation, at place, f fault) (end ending, ok bool) {
	switch f.name {
	case "kill before", "kill during", "kill after", "transient", "timeout", "heartbeat lost":
		return endsWell, true
	case "permanent", "operator":
		if at.atomic && at.settled {
			return "", false // it frees what it owns: nothing in it can be refused
		}
		if op.builds && at.activity == activities.StateBegin {
			return endsGone, true // refused before there was a record
		}
		return op.refused(at), true
	case "permanent after":
		if at.atomic || op.deletes || op.refused(at) == endsTrue {
			return "", false
		}
		return op.refused(at), true
	case "held, retried", "held, aborted", "held, cancelled":
		if !op.holds || at.atomic || at.settled {
			return "", false
		}
		return map[string]ending{"held, retried": endsWell, "held, aborted": op.refused(at), "held, cancelled": op.given(at)}[f.name], true
	case "held, skipped":
		return endsWell, op.holds && at.activity == activities.AnsibleRun
	case "cancel before":
		if op.deletes || at.settled || op.commits(at) {
			return endsWell, true // it goes on to its end
		}
		return op.given(at), true
	case "cancel after":
		if op.deletes || at.settled || at.activity == activities.StateFinish {
			return endsWell, true // it had ended already
		}
		return op.given(at), true
	}
	return appliesToWorld(op, at, f)
}

// unheard: undoing would need an answer of the guest.
func unheard(at place, f fault) bool {
	return at.unplugs && (at.atomic || slices.Contains(givenUpAfter, f.name))
}

// givenUpAfter are the faults by which an operation is given up after a step's side effect.
var givenUpAfter = []string{"permanent after", "held, aborted", "held, cancelled", "cancel after"}

// keeping is the end where the guest does not give back what it got.
func keeping(at place, f fault, end ending) ending {
	if end == endsBack && (at.plugged || at.plugs && slices.Contains(givenUpAfter, f.name)) {
		return endsTrue
	}
	return end
}

// commits: a change is on record with its last step, and a cancel that comes with it comes too late.
func (op operation) commits(at place) bool {
	return op.from != worldGone && at.activity == activities.StateFinish
}

// refused is the end of an operation whose step is refused for good.
func (op operation) refused(at place) ending {
	switch {
	case op.builds:
		return endsFailed
	case at.leaves:
		return endsLeaving
	case op.from != worldGone && !op.deletes && !at.settled && !at.stays:
		return endsBack
	}
	return endsTrue
}

// given is the end of an operation that is cancelled.
func (op operation) given(at place) ending {
	if op.builds {
		return endsGone
	}
	return op.refused(at)
}

// appliesToWorld is applies for what happens outside of burrow.
func appliesToWorld(op operation, at place, f fault) (end ending, ok bool) {
	switch f.name {
	case "Temporal and etcd killed":
		return endsWell, true
	case "etcd leader killed": // a provision and a delete write all there is
		return endsWell, op.kind == manifest.KindServer && (op.builds || op.deletes)
	case "guest killed":
		return endsWell, slices.Contains(beforeItRuns, at.activity) && !at.plugged // a guest that is changed runs already
	case "libvirtd killed":
		return endsWell, slices.Contains(usesLibvirt, at.activity)
	case "Open vSwitch killed":
		return endsWell, slices.Contains(usesSwitch, at.activity)
	case "disk full":
		return op.refused(at), slices.Contains(usesRoom, at.activity)
	case "disk full, held":
		return endsWell, op.holds && slices.Contains(usesRoom, at.activity)
	case "key server 404", "key server HTML": // a rebuild asks the server that the build asked
		return endsFailed, op.builds && at.activity == activities.KeysFetch
	case "key server 500", "key server slow":
		return endsWell, op.builds && at.activity == activities.KeysFetch
	}
	return "", false
}

var (
	usesLibvirt = []string{
		activities.ImageEnsure, activities.VolumeBuild, activities.VolumeRemove, activities.VolumeCreate, activities.VolumeDelete,
		activities.DomainStart, activities.DomainResume, activities.DomainShutdown, activities.DomainRemove, activities.GuestWaitReady,
		activities.VolumeAdd, activities.VolumeDrop, activities.VolumeRebuild, activities.VolumeDiscard,
		activities.DomainPlug, activities.DomainUnplug, activities.DomainGrow,
		activities.DomainRedefine, activities.DomainPlugNICs, activities.DomainUnplugNICs, activities.DomainInsertSeed, activities.DomainFit,
	}
	// beforeItRuns are what comes between a guest's start and its first instruction.
	beforeItRuns = []string{activities.NetworkWire, activities.DomainResume}
	// usesRoom writes more to the pool than a few blocks.
	usesRoom   = []string{activities.VolumeBuild, activities.VolumeCreate, activities.VolumeAdd, activities.VolumeRebuild}
	usesSwitch = []string{
		activities.NetworkEnsure, activities.NetworkProbe, activities.NetworkWire, activities.NetworkUnwire, activities.NetworkRelease,
		activities.DomainStart, activities.DomainResume,
	}
)

// table is the matrix: every fault at every step where it can happen.
func table() []cell {
	var all []cell
	for _, op := range operations() {
		for _, at := range op.steps {
			for _, f := range faults {
				if end, ok := applies(op, at, f); ok && !(end == endsBack && unheard(at, f)) {
					all = append(all, cell{op: op, at: at, fault: f, end: keeping(at, f, end)})
				}
			}
		}
	}
	return append(all, undoing()...)
}

// undoing are the cells of undos: of operations that were refused when all was made.
func undoing() (all []cell) {
	for _, op := range operations() {
		for _, at := range op.undos {
			for _, f := range faults {
				switch f.name {
				case "kill before", "kill during", "kill after", "transient", "timeout", "heartbeat lost", "cancel before", "cancel after":
					all = append(all, cell{op: op, at: at, fault: f, end: keeping(at, f, op.refused(at)), broken: true})
				case "Temporal and etcd killed", "etcd leader killed", "libvirtd killed", "Open vSwitch killed":
					if _, ok := appliesToWorld(op, at, f); ok {
						all = append(all, cell{op: op, at: at, fault: f, end: keeping(at, f, op.refused(at)), broken: true})
					}
				case "permanent":
					switch {
					case at.atomic, at.activity == activities.DomainShutdown: // refused only where the guest is none of ours
					case op.builds:
						all = append(all, cell{op: op, at: at, fault: f, end: endsOwing, broken: true})
					default:
						all = append(all, cell{op: op, at: at, fault: f, end: endsTrue, broken: true})
					}
				}
			}
		}
	}
	return all
}

// rank orders cells by a seed: the same seed gives the same order on every machine.
func rank(seed string, c cell) uint64 {
	h := fnv.New64a()
	fmt.Fprint(h, seed, "|", c.String())
	return h.Sum64()
}

// cancelThere cancels the operation while it waits in the step.
func cancelThere(ctx context.Context, c *subject, at place, run client.WorkflowRun) error {
	if err := c.reached(ctx, at.activity, 1); err != nil {
		return err
	}
	if err := c.temporal.CancelWorkflow(ctx, run.GetID(), run.GetRunID()); err != nil {
		return err
	}
	// Activities that must not be cancelled (a record's beginning, a delete's steps) go on
	// when they are let; the others end by the cancellation, and this changes nothing.
	ctx, stop := context.WithTimeout(ctx, graceOfCancel)
	defer stop()
	_ = until(ctx, "the activity is cancelled", func() error {
		d, err := c.current(ctx)
		if err != nil {
			return err
		}
		for _, a := range d.GetPendingActivities() {
			if a.GetActivityType().GetName() == at.activity {
				return fmt.Errorf("%s is pending", at.activity)
			}
		}
		return nil
	})
	return c.orders.release(c.ref(), at.activity)
}

// graceOfCancel is how long an activity is given to end by a cancel before it is released.
const graceOfCancel = 3 * time.Second

// thaw lets a frozen worker go on once Temporal has given its activity up.
func thaw(ctx context.Context, c *subject, at place, run client.WorkflowRun) error {
	if err := c.reached(ctx, at.activity, 1); err != nil {
		return err
	}
	err := until(ctx, "the lost heartbeat is noticed", func() error {
		d, err := c.describe(ctx, run)
		if err != nil {
			return err
		}
		for _, a := range d.GetPendingActivities() {
			if a.GetActivityType().GetName() == at.activity && a.GetAttempt() < 2 {
				return fmt.Errorf("%s: attempt %d", at.activity, a.GetAttempt())
			}
		}
		return nil
	})
	c.worker.signal(syscall.SIGCONT)
	return err
}

// held waits for the hold, checks that everything is kept, and decides.
func held(decision string, in any) func(context.Context, *subject, place, client.WorkflowRun) error {
	return func(ctx context.Context, c *subject, _ place, run client.WorkflowRun) error {
		if err := c.held(ctx, run); err != nil {
			return err
		}
		if decision == "cancel" {
			return c.temporal.CancelWorkflow(ctx, run.GetID(), run.GetRunID())
		}
		return c.decide(ctx, run, decision, in)
	}
}

// held waits until the operation is held, with its reason, and still runs.
func (c *subject) held(ctx context.Context, run client.WorkflowRun) error {
	err := until(ctx, c.ref()+" is held", func() error {
		rec, _, err := c.record(ctx)
		if err == nil && rec.Status.Phase != manifest.PhaseHeld {
			err = fmt.Errorf("it is %q", rec.Status.Phase)
		}
		if err == nil && rec.Status.Message == "" {
			err = errors.New("held without a reason")
		}
		return err
	})
	if err != nil {
		return err
	}
	d, err := c.describe(ctx, run)
	if err != nil {
		return err
	}
	if s := d.GetWorkflowExecutionInfo().GetStatus(); s != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
		return fmt.Errorf("held, and its workflow is %s", s)
	}
	return nil
}

// decide answers a hold. The operation takes the answer a moment after its record says Held.
func (c *subject) decide(ctx context.Context, run client.WorkflowRun, decision string, in any) error {
	return until(ctx, "the decision is accepted", func() error { return c.update(ctx, run, decision, in) })
}
