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
	// endsTrue: a settled record that says how things are; asking again works.
	endsTrue ending = "refused; the record is true; asking again works"
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
	{name: "timeout", words: "the step acts, then says nothing until its time is over", order: order{Deed: hang, Times: 1}},
	{name: "heartbeat lost", words: "the worker is frozen after the side effect, and goes on while the step is tried again", order: order{Deed: freeze, Times: 1}, act: thaw, shared: true},
	{name: "cancel before", words: "burrow cancel as the step begins", order: order{Deed: waitBefore, Times: 1}, act: cancelThere},
	{name: "cancel after", words: "burrow cancel when the side effect has happened", order: order{Deed: waitAfter, Times: 1}, act: cancelThere},
	{name: "Temporal and etcd killed", words: "both are killed (-9) under the step, and start again", order: order{Deed: waitBefore, Times: 1}, act: disaster((*site).crashDevstack), shared: true},
	{name: "etcd leader killed", words: "of three members of etcd, the leader is killed (-9) under the step", order: order{Deed: waitBefore, Times: 1}, act: disaster((*site).crashLeader), shared: true, cluster: true},
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
	// broken: the provision is made to fail when everything is built, and the fault hits its undo.
	broken bool
}

func (c cell) String() string { return c.op.name + " | " + c.at.step + " | " + c.fault.name }

// applies gives the end of a cell; ok is false where the fault cannot happen.
func applies(op operation, at place, f fault) (end ending, ok bool) {
	last := at.activity == activities.StateFinish || at.activity == activities.StateRemove
	switch f.name {
	case "kill before", "kill during", "kill after", "transient", "timeout", "heartbeat lost":
		return endsWell, true
	case "permanent", "operator":
		switch {
		case op.builds && at.activity == activities.StateBegin:
			return endsGone, true // refused before there was a record
		case op.builds:
			return endsFailed, true
		default:
			return endsTrue, true
		}
	case "permanent after":
		if at.atomic || !op.builds {
			return "", false
		}
		return endsFailed, true
	case "held, retried", "held, aborted", "held, cancelled":
		if op.name != "provision a server" || at.atomic {
			return "", false
		}
		return map[string]ending{"held, retried": endsWell, "held, aborted": endsFailed, "held, cancelled": endsGone}[f.name], true
	case "cancel before":
		switch {
		case op.deletes:
			return endsWell, true // a delete goes on to its end
		case op.builds:
			return endsGone, true
		default:
			return endsTrue, true
		}
	case "cancel after":
		switch {
		case op.deletes, last:
			return endsWell, true // it had ended already
		case op.builds:
			return endsGone, true
		default:
			return endsTrue, true
		}
	}
	return appliesToWorld(op, at, f)
}

// appliesToWorld is applies for what happens outside of burrow.
func appliesToWorld(op operation, at place, f fault) (end ending, ok bool) {
	switch f.name {
	case "Temporal and etcd killed":
		return endsWell, true
	case "etcd leader killed": // a provision and a delete write all there is
		return endsWell, op.kind == manifest.KindServer && (op.builds || op.deletes)
	case "libvirtd killed":
		return endsWell, slices.Contains(usesLibvirt, at.activity)
	case "Open vSwitch killed":
		return endsWell, slices.Contains(usesSwitch, at.activity)
	case "disk full":
		return endsFailed, at.activity == activities.VolumeBuild || at.activity == activities.VolumeCreate
	case "disk full, held":
		return endsWell, at.activity == activities.VolumeBuild
	case "key server 404", "key server HTML":
		return endsFailed, at.activity == activities.KeysFetch
	case "key server 500", "key server slow":
		return endsWell, at.activity == activities.KeysFetch
	}
	return "", false
}

var (
	usesLibvirt = []string{
		activities.ImageEnsure, activities.VolumeBuild, activities.VolumeRemove, activities.VolumeCreate, activities.VolumeDelete,
		activities.DomainStart, activities.DomainResume, activities.DomainShutdown, activities.DomainRemove, activities.GuestWaitReady,
	}
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
				if end, ok := applies(op, at, f); ok {
					all = append(all, cell{op: op, at: at, fault: f, end: end})
				}
			}
		}
	}
	broken := operations()[0]
	for _, at := range undos() {
		for _, f := range faults {
			switch f.name {
			case "kill before", "kill during", "kill after", "transient", "timeout", "heartbeat lost", "cancel before", "cancel after":
				all = append(all, cell{op: broken, at: at, fault: f, end: endsFailed, broken: true})
			case "Temporal and etcd killed", "etcd leader killed", "libvirtd killed", "Open vSwitch killed":
				if _, ok := appliesToWorld(broken, at, f); ok {
					all = append(all, cell{op: broken, at: at, fault: f, end: endsFailed, broken: true})
				}
			case "permanent":
				if !at.atomic {
					all = append(all, cell{op: broken, at: at, fault: f, end: endsOwing, broken: true})
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

// reached waits until the order was obeyed at least n times.
func (c *subject) reached(ctx context.Context, activity string, n int) error {
	return until(ctx, fmt.Sprintf("%s: the fault in %s", c.ref(), activity), func() error {
		if done := c.orders.done(c.ref(), activity); done < n {
			return fmt.Errorf("it happened %d times, not %d", done, n)
		}
		return nil
	})
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
		d, err := c.describe(ctx, run)
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
