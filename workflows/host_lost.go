package workflows

import (
	"encoding/json"
	"slices"

	"go.temporal.io/sdk/workflow"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/activities/lost"
	"burrow.dev/burrow/internal/errs"
)

// hosts is what an operation knows of hosts that were declared lost while it runs.
type hosts struct {
	lost  map[string]bool
	waits []*hostWait
}

// hostWait is a call that waits for a host.
type hostWait struct {
	host string
	stop workflow.CancelFunc
}

// Owable reports whether a lost host can do an activity when it is back, and says in words
// what that is: it takes away what carries its owner's mark, and answers nothing. What an
// undo puts back is not among them: the host restores what its records say by itself.
func Owable(activity string) (what string, ok bool) {
	switch activity {
	case activities.AnsibleReap:
		what = "stop its playbook"
	case activities.DomainRemove:
		what = "remove its domain"
	case activities.DomainUnplug:
		what = "unplug its new disks"
	case activities.NetworkUnwire:
		what = "unwire its ports"
	case activities.NetworkRelease:
		what = "release its networks"
	case activities.SeedRemove:
		what = "remove its seed and keys"
	case activities.SeedPrune:
		what = "remove its other seed"
	case activities.VolumeRemove:
		what = "remove its volumes"
	case activities.VolumeDrop:
		what = "remove its new volumes"
	case activities.VolumeDiscard:
		what = "remove its other boot volume"
	case activities.VolumeDelete:
		what = "delete the volume"
	case activities.ImageRemove:
		what = "remove the image"
	}
	return what, what != ""
}

// heed takes in that a host was declared lost: every call that waits for it is given up.
// An attempt that somebody still works on ends first, or is found dead by its heartbeat.
func (op *operation) heed(ctx workflow.Context) {
	workflow.Go(ctx, func(ctx workflow.Context) {
		told := workflow.GetSignalChannel(ctx, lost.Signal)
		for {
			var in lost.HostLost
			told.Receive(ctx, &in)
			op.lose(in.Host)
			for _, w := range op.waits {
				if w.host == in.Host {
					w.stop()
				}
			}
		}
	})
}

// lose notes that hosts are lost.
func (op *operation) lose(names ...string) {
	for _, name := range names {
		if op.hosts.lost == nil {
			op.hosts.lost = map[string]bool{}
		}
		op.hosts.lost[name] = true
	}
}

// reach runs a call at its place. One at a lost host is not waited for: a step of an undo
// or a delete is written down, for the host to do when it is back, and any other fails for
// good. A host that has come back meanwhile is called as always.
func (op *operation) reach(ctx workflow.Context, host, activity string, in any, run func(workflow.Context) error) error {
	if host == "" {
		return run(ctx)
	}
	for {
		if !op.hosts.lost[host] {
			err := op.unlessLost(ctx, host, run)
			if err == nil || !op.hosts.lost[host] || ctx.Err() != nil {
				return err
			}
		}
		back, err := op.without(ctx, host, activity, in)
		if !back {
			return err
		}
		delete(op.hosts.lost, host)
	}
}

// unlessLost runs a call until it ends, or its host is declared lost.
func (op *operation) unlessLost(ctx workflow.Context, host string, run func(workflow.Context) error) error {
	waiting, stop := workflow.WithCancel(ctx)
	defer stop()
	this := &hostWait{host, stop}
	op.waits = append(op.waits, this)
	err := run(waiting)
	op.waits = slices.DeleteFunc(op.waits, func(w *hostWait) bool { return w == this })
	return err
}

// without does what an operation can do without a lost host; back: it is not lost any more.
func (op *operation) without(ctx workflow.Context, host, activity string, in any) (back bool, err error) {
	what, owed := Owable(activity)
	if owed && undoingIn(ctx) == takingAway {
		return op.owe(ctx, host, activity, what, in)
	}
	out, err := call[lost.AskOut](ctx, op, onControl(quickTimeout), activities.LostAsk, lost.AskIn{Host: host})
	if err != nil || !out.Lost {
		return err == nil, err
	}
	if undoingIn(ctx) != forward {
		return false, nil // the host makes it as its records say when it is back
	}
	return false, errs.NewPermanent(op.Resource, currentStep(ctx), errs.Reason("host %s was declared lost", host),
		"bring the host back, or do it again on another one")
}

func (op *operation) owe(ctx workflow.Context, host, activity, what string, in any) (back bool, err error) {
	input, err := json.Marshal(in)
	if err != nil {
		return false, errs.NewPermanent(op.Resource, what, err, "report this")
	}
	out, err := call[lost.OweOut](ctx, op, onControl(quickTimeout), activities.LostOwe, lost.OweIn{
		Host: host, Object: op.Resource, What: what, Activity: activity, Input: input,
	})
	if err == nil && out.Owed {
		op.owes(ctx, host)
	}
	return err == nil && !out.Owed, err
}

// owes shows that a step is left to the host.
func (op *operation) owes(ctx workflow.Context, host string) {
	if name := currentStep(ctx); name != stepUndo {
		op.detail(ctx, name, "host %s is lost: it does this when it is back", host)
	}
}

// backKey marks a context in which something is undone.
type backKey struct{}

// undoing says what an undo does.
type undoing int

const (
	forward undoing = iota
	takingAway
	puttingBack
)

// takeAway marks a context in which what was made is taken away: an undo, a delete.
func takeAway(ctx workflow.Context) workflow.Context {
	return workflow.WithValue(ctx, backKey{}, takingAway)
}

// putBack marks a context in which a server that stands is made as it was.
func putBack(ctx workflow.Context) workflow.Context {
	return workflow.WithValue(ctx, backKey{}, puttingBack)
}

func undoingIn(ctx workflow.Context) undoing {
	what, _ := ctx.Value(backKey{}).(undoing)
	return what
}
