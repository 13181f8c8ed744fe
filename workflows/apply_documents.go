package workflows

import (
	"slices"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"burrow.dev/burrow/activities"
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
	results := make([]DocumentResult, len(in.Documents))
	ended := make(map[string]bool, len(in.Documents)) // ref → ended well
	slots := workflow.NewSemaphore(ctx, int64(width))
	group := workflow.NewWaitGroup(ctx)
	for i, doc := range in.Documents {
		group.Add(1)
		workflow.Go(ctx, func(ctx workflow.Context) {
			defer group.Done()
			results[i] = applyOne(ctx, slots, in.Documents, doc, ended)
			ended[doc.Ref] = results[i].Error == ""
		})
	}
	free, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	group.Wait(free)
	return ApplyOut{Results: results}, ctx.Err()
}

// applyOne waits for what doc depends on, then for a slot, then for its own workflow.
func applyOne(ctx workflow.Context, slots workflow.Semaphore, all []Document, doc Document, ended map[string]bool) DocumentResult {
	result := DocumentResult{Ref: doc.Ref}
	inApply := slices.DeleteFunc(slices.Clone(doc.DependsOn), func(ref string) bool {
		return !slices.ContainsFunc(all, func(d Document) bool { return d.Ref == ref })
	})
	err := workflow.Await(ctx, func() bool {
		return !slices.ContainsFunc(inApply, func(ref string) bool { _, ok := ended[ref]; return !ok })
	})
	if err != nil {
		result.Error, result.Skipped = "cancelled before it started", true
		return result
	}
	for _, ref := range inApply {
		if !ended[ref] {
			result.Error, result.Skipped = "not started: "+ref+" did not get ready", true
			return result
		}
	}
	if err := slots.Acquire(ctx, 1); err != nil {
		result.Error, result.Skipped = "cancelled before it started", true
		return result
	}
	defer slots.Release(1)
	if err := startDocument(ctx, doc).Get(ctx, nil); err != nil {
		result.Error = reason(err)
		if temporal.IsWorkflowExecutionAlreadyStartedError(err) {
			result.Busy = true
			result.Error = doc.Ref + " is busy with another operation; follow it with `burrow watch " + doc.Ref + "`"
		}
	}
	return result
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
