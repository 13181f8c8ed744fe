package follow

import (
	"slices"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	failurepb "go.temporal.io/api/failure/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/converter"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/cli/render"
	"burrow.dev/burrow/manifest"
	"burrow.dev/burrow/workflows"
)

// stepUndo is the step that compensation runs under.
const stepUndo = "undo"

// reducer holds one workflow's view, event by event.
type reducer struct {
	op         render.Operation
	kind       string                   // workflow type
	activities map[int64]*activityState // by the id of their scheduled event
	byID       map[string]*activityState
	children   []Target // started, not yet followed
	kids       []Target // all it started
	closed     bool
	status     enumspb.WorkflowExecutionStatus
	failure    *failurepb.Failure
	result     []byte
	held       bool
}

type activityState struct {
	step string
	name string
	open bool
}

func newReducer(id string) *reducer {
	return &reducer{
		op:         render.Operation{ID: id, Title: id, State: render.Running},
		activities: map[int64]*activityState{}, byID: map[string]*activityState{},
	}
}

// apply takes the next event of the history.
func (r *reducer) apply(e *historypb.HistoryEvent) {
	at := e.GetEventTime().AsTime()
	switch e.GetEventType() {
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED:
		r.started(e, at)
	case enumspb.EVENT_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES:
		r.searched(e.GetUpsertWorkflowSearchAttributesEventAttributes().GetSearchAttributes().GetIndexedFields(), at)
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
		r.scheduled(e, at)
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
		r.ended(e.GetActivityTaskCompletedEventAttributes().GetScheduledEventId(), at, render.Done, "")
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_FAILED:
		a := e.GetActivityTaskFailedEventAttributes()
		r.ended(a.GetScheduledEventId(), at, render.Failed, words(a.GetFailure()))
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT:
		a := e.GetActivityTaskTimedOutEventAttributes()
		r.ended(a.GetScheduledEventId(), at, render.Failed, words(a.GetFailure()))
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_CANCELED:
		r.ended(e.GetActivityTaskCanceledEventAttributes().GetScheduledEventId(), at, render.Skipped, "cancelled")
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED, enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CANCEL_REQUESTED:
		// A person has decided; its phase says so only when its record does.
		r.held, r.op.State, r.op.Message = false, render.Running, ""
	case enumspb.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_STARTED:
		child := e.GetChildWorkflowExecutionStartedEventAttributes().GetWorkflowExecution()
		t := Target{ID: child.GetWorkflowId(), RunID: child.GetRunId()}
		r.children, r.kids = append(r.children, t), append(r.kids, t)
	default:
		r.close(e, at)
	}
}

func (r *reducer) started(e *historypb.HistoryEvent, at time.Time) {
	a := e.GetWorkflowExecutionStartedEventAttributes()
	r.kind = a.GetWorkflowType().GetName()
	r.op.Title = r.op.ID + "  " + r.kind
	r.op.Started = at
	var in workflows.ProvisionServerIn
	readable := false // an input that is not skips nothing yet, and the end tells
	if p := a.GetInput().GetPayloads(); r.kind == workflows.NameProvisionServer && len(p) > 0 {
		readable = converter.GetDefaultDataConverter().FromPayload(p[0], &in) == nil
	}
	for _, name := range workflows.StepNames(r.kind) {
		state := render.Pending
		if readable && in.Skips(name) {
			state = render.Skipped
		}
		r.op.Steps = append(r.op.Steps, render.Step{Name: name, State: state})
	}
}

// step finds a step; one that nobody announced is appended.
func (r *reducer) step(name string) *render.Step {
	i := slices.IndexFunc(r.op.Steps, func(s render.Step) bool { return s.Name == name })
	if i < 0 {
		r.op.Steps = append(r.op.Steps, render.Step{Name: name, State: render.Pending})
		i = len(r.op.Steps) - 1
	}
	return &r.op.Steps[i]
}

func (r *reducer) scheduled(e *historypb.HistoryEvent, at time.Time) {
	a := e.GetActivityTaskScheduledEventAttributes()
	if a.GetActivityType().GetName() == activities.StateHold {
		return // it writes down how the step ended, and is no part of it
	}
	var summary string
	// A summary that cannot be read is as good as none.
	_ = converter.GetDefaultDataConverter().FromPayload(e.GetUserMetadata().GetSummary(), &summary)
	name, detail, _ := strings.Cut(summary, ": ")
	if name == "" {
		name = a.GetActivityType().GetName()
	}
	act := &activityState{step: name, name: a.GetActivityType().GetName(), open: true}
	r.activities[e.GetEventId()] = act
	r.byID[a.GetActivityId()] = act
	s := r.step(name)
	if s.Started.IsZero() || s.State == render.Held {
		s.Started = at // what it took before it was held is another try's
	}
	s.State, s.Ended, s.Attempt = render.Running, time.Time{}, 0
	if name == stepUndo {
		s.State = render.Undoing
	}
	if detail != "" {
		s.Detail = detail
	}
}

// ended settles an activity and, when it was its step's last open one, the step.
func (r *reducer) ended(scheduled int64, at time.Time, state render.State, problem string) {
	act := r.activities[scheduled]
	if act == nil {
		return
	}
	act.open = false
	s := r.step(act.step)
	if problem != "" {
		s.LastError = problem
	}
	for _, other := range r.activities {
		if other.open && other.step == act.step {
			return
		}
	}
	s.Ended, s.State = at, state
	if act.step == stepUndo && state == render.Done {
		s.State = render.Undone
	}
	if state == render.Done {
		s.LastError = ""
	}
	s.NextTry = time.Time{}
}

// searched reads the hold, which only the search attributes tell.
func (r *reducer) searched(fields map[string]*payload, at time.Time) {
	if p, ok := fields["BurrowPhase"]; ok {
		var phase string
		_ = converter.GetDefaultDataConverter().FromPayload(p, &phase)
		r.held = phase == string(manifest.PhaseHeld)
		r.op.State = render.Running
		if r.held {
			r.op.State = render.Held
		}
	}
	if !r.held {
		return
	}
	for i := range r.op.Steps {
		if s := &r.op.Steps[i]; s.State == render.Failed {
			s.State = render.Held
			r.op.Message = s.LastError
		}
	}
}

// close settles the operation when e is its last event.
func (r *reducer) close(e *historypb.HistoryEvent, at time.Time) {
	switch e.GetEventType() {
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED:
		r.status, r.op.State, r.op.Message = enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED, render.Done, ""
		if p := e.GetWorkflowExecutionCompletedEventAttributes().GetResult().GetPayloads(); len(p) > 0 {
			r.result = p[0].GetData()
		}
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED:
		r.status, r.op.State = enumspb.WORKFLOW_EXECUTION_STATUS_FAILED, render.Failed
		r.failure = e.GetWorkflowExecutionFailedEventAttributes().GetFailure()
		r.op.Message = words(r.failure)
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED:
		r.status, r.op.State, r.op.Message = enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED, render.Failed, r.cancelledWords()
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED:
		r.status, r.op.State = enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED, render.Failed
		r.op.Message = "terminated from outside: nothing was undone; run `burrow delete " + r.op.ID + "`"
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_TIMED_OUT:
		r.status, r.op.State, r.op.Message = enumspb.WORKFLOW_EXECUTION_STATUS_TIMED_OUT, render.Failed, "timed out"
	default:
		return
	}
	r.closed, r.op.Ended = true, at
	if r.status != enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED {
		return // what did not run was not skipped
	}
	for i := range r.op.Steps {
		if s := &r.op.Steps[i]; s.State == render.Pending {
			s.State = render.Skipped
		}
	}
}

// cancelledWords says what a cancelled operation has left: builds are undone, and what a
// power operation, a playbook or a sweep did by then is done.
func (r *reducer) cancelledWords() string {
	switch r.kind {
	case workflows.NamePowerServer, workflows.NameStartNext, workflows.NameApplyDocuments, workflows.NameSweep, workflows.NameDrift, workflows.NameScheduled:
		return "cancelled"
	case workflows.NameRebuildServer, workflows.NameUpdateServer:
		return "cancelled; the server is as it was"
	case workflows.NameConfigureServer, workflows.NameRunPlaybook:
		return "cancelled; what the playbook had done by then is done"
	}
	return "cancelled; everything it had made is removed"
}

// words is the innermost application failure: the activity's own text.
func words(f *failurepb.Failure) string {
	text := ""
	for ; f != nil; f = f.GetCause() {
		if f.GetMessage() != "" {
			text = f.GetMessage()
		}
		if f.GetApplicationFailureInfo() != nil {
			return f.GetMessage()
		}
	}
	return text
}
