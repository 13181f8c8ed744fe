package workflows

import (
	"slices"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/activities/state"
)

// ApplyDocuments builds a set of documents, each as a workflow of its own under its
// resource's name: what depends on another waits for it, the rest goes side by side, a
// few at a time. One document's failure stops only what depends on it. Cancelling the
// apply cancels what it has started, and waits for it.
func ApplyDocuments(ctx workflow.Context, in ApplyIn) (ApplyOut, error) {
	width := in.Width
	if width <= 0 {
		width = defaultWidth
	}
	a := &applying{in: in, ended: make(map[string]bool, len(in.Documents)), slots: workflow.NewSemaphore(ctx, int64(width))}
	results := make([]DocumentResult, len(in.Documents))
	group := workflow.NewWaitGroup(ctx)
	for i, doc := range in.Documents {
		group.Add(1)
		workflow.Go(ctx, func(ctx workflow.Context) {
			defer group.Done()
			results[i] = a.one(ctx, doc)
			a.ended[doc.Ref] = results[i].Error == ""
		})
	}
	free, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	group.Wait(free)
	return ApplyOut{Results: results}, ctx.Err()
}

// applying is one set of documents on its way.
type applying struct {
	in    ApplyIn
	ended map[string]bool // ref → ended well
	slots workflow.Semaphore
}

// one waits for what doc depends on, then for a slot, then for its own workflow.
func (a *applying) one(ctx workflow.Context, doc Document) DocumentResult {
	result := DocumentResult{Ref: doc.Ref}
	inApply := slices.DeleteFunc(slices.Clone(doc.DependsOn), func(ref string) bool {
		return !slices.ContainsFunc(a.in.Documents, func(d Document) bool { return d.Ref == ref })
	})
	err := workflow.Await(ctx, func() bool {
		return !slices.ContainsFunc(inApply, func(ref string) bool { _, ok := a.ended[ref]; return !ok })
	})
	if err != nil {
		result.Error, result.Skipped = "cancelled before it started", true
		return result
	}
	for _, ref := range inApply {
		if !a.ended[ref] {
			result.Error, result.Skipped = "not started: "+ref+" did not get ready", true
			return result
		}
	}
	for {
		if err := a.slots.Acquire(ctx, 1); err != nil {
			result.Error, result.Skipped = "cancelled before it started", true
			return result
		}
		err := startDocument(ctx, doc).Get(ctx, nil)
		a.slots.Release(1)
		switch {
		case err == nil:
			return result
		case !temporal.IsWorkflowExecutionAlreadyStartedError(err):
			result.Error = reason(err)
			return result
		case !a.in.Queue:
			result.Busy = true
			result.Error = doc.Ref + " is busy with another operation; follow it with `burrow watch " + doc.Ref + "`"
			return result
		}
		if result = a.waitTurn(ctx, doc.Ref); result.Error != "" {
			return result
		}
		stands, err := anew(ctx, &doc, a.in.Restart)
		if err != nil {
			result.Error = reason(err)
		}
		if err != nil || stands {
			return result
		}
	}
}

// waitTurn takes the one place in a resource's queue until its open operation has ended.
func (a *applying) waitTurn(ctx workflow.Context, ref string) DocumentResult {
	result := DocumentResult{Ref: ref}
	opts := childOptions(NextID(ref), enumspb.PARENT_CLOSE_POLICY_REQUEST_CANCEL)
	opts.StaticSummary = "apply " + ref + " when it is free"
	opts.Memo = map[string]any{MemoNext: NameApplyDocuments}
	err := workflow.ExecuteChildWorkflow(workflow.WithChildOptions(ctx, opts), NameStartNext, StartNextIn{Ref: ref, TurnOnly: true}).Get(ctx, nil)
	switch {
	case err == nil:
	case temporal.IsWorkflowExecutionAlreadyStartedError(err):
		result.Busy = true
		result.Error = ref + " is busy, and another operation waits for it already: one waits at a time; apply again when that has started"
	case stopped(err):
		result.Error, result.Skipped = "cancelled before it started", true
	default:
		result.Error = reason(err)
	}
	return result
}

// anew has it decided again what there is to do about a document that had to wait:
// nothing (stands), to build its resource, or to change it.
func anew(ctx workflow.Context, doc *Document, restart bool) (stands bool, err error) {
	declared, err := doc.Declared(restart)
	if err != nil {
		return false, err
	}
	actx := workflow.WithActivityOptions(ctx, onControl(quickTimeout).options("look at "+doc.Ref))
	var out state.LookOut
	err = workflow.ExecuteActivity(actx, activities.StateLook,
		state.LookIn{Kind: declared.Kind, Name: declared.Metadata.Name, Declared: &declared}).Get(ctx, &out)
	if err != nil {
		return false, err
	}
	doc.Follow(out.Decision, restart)
	return out.Decision.Stands, nil
}

// startDocument starts the child workflow of a document.
func startDocument(ctx workflow.Context, doc Document) workflow.ChildWorkflowFuture {
	ctx = workflow.WithChildOptions(ctx, childOptions(doc.Ref, enumspb.PARENT_CLOSE_POLICY_REQUEST_CANCEL))
	switch {
	case doc.Network != nil:
		return workflow.ExecuteChildWorkflow(ctx, NameCreateNetwork, *doc.Network)
	case doc.Volume != nil:
		return workflow.ExecuteChildWorkflow(ctx, NameCreateVolume, *doc.Volume)
	case doc.Image != nil:
		return workflow.ExecuteChildWorkflow(ctx, NameCreateImage, *doc.Image)
	case doc.Playbook != nil:
		return workflow.ExecuteChildWorkflow(ctx, NameRunPlaybook, *doc.Playbook)
	case doc.Update != nil:
		return workflow.ExecuteChildWorkflow(ctx, NameUpdateServer, *doc.Update)
	default:
		return workflow.ExecuteChildWorkflow(ctx, NameProvisionServer, *doc.Server)
	}
}

// childOptions are those of every child: its ID is its resource, one at a time; it is
// waited for when it is cancelled, since its undo belongs to it.
func childOptions(ref string, onParentClose enumspb.ParentClosePolicy) workflow.ChildWorkflowOptions {
	return workflow.ChildWorkflowOptions{
		WorkflowID:            ref,
		TaskQueue:             activities.ControlQueue,
		WorkflowIDReusePolicy: enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		ParentClosePolicy:     onParentClose,
		WaitForCancellation:   true,
		StaticSummary:         ref,
	}
}
