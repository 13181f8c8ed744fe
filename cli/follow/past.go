package follow

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	failurepb "go.temporal.io/api/failure/v1"
	historypb "go.temporal.io/api/history/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/activities/ansible"
	"burrow.dev/burrow/cli/render"
	"burrow.dev/burrow/manifest"
)

// Past is one operation of a resource, open or ended.
type Past struct {
	Operation   string        `json:"operation"`       // "ProvisionServer"
	RunID       string        `json:"runId"`           // of the workflow
	Check       bool          `json:"check,omitempty"` // it only asked what would change
	RequestedBy string        `json:"requestedBy,omitempty"`
	Started     time.Time     `json:"started"`
	Ended       time.Time     `json:"ended,omitzero"`
	State       render.State  `json:"state"`
	Message     string        `json:"message,omitempty"` // why it failed, or waits
	Steps       []render.Step `json:"steps"`
	Playbooks   []PlaybookRun `json:"playbooks"`
}

// PlaybookRun is one run of playbooks, with all its attempts.
type PlaybookRun struct {
	// RunID names its log; of several attempts, the last one's. Empty where Temporal has not
	// been told: while it runs, and for a run whose worker died.
	RunID    string   `json:"runId,omitempty"`
	Playbook []string `json:"playbook"`
	Bundle   string   `json:"bundle"`
	// Source is where the bundle was fetched from; nil: from a folder.
	Source *manifest.GitSource `json:"source,omitempty"`
	// Requirements is the digest of its requirements file, where Temporal has been told.
	Requirements string    `json:"requirements,omitempty"`
	Started      time.Time `json:"started"`
	Ended        time.Time `json:"ended,omitzero"`
	// Attempts counts them; more than one where the server could not be reached, or the
	// worker died.
	Attempts int                       `json:"attempts"`
	State    render.State              `json:"state"`
	Recap    map[string]manifest.Recap `json:"recap,omitempty"`
	Message  string                    `json:"message,omitempty"`
}

// Operations gives the operations of the workflow ID, latest first, at most most of them
// (0: all): what Temporal still has of them.
func Operations(ctx context.Context, c client.Client, namespace, id string, most int) ([]Past, error) {
	runs, err := runsOf(ctx, c, namespace, id)
	if err != nil {
		return nil, err
	}
	if most > 0 && len(runs) > most {
		runs = runs[:most]
	}
	all := make([]Past, 0, len(runs))
	for _, run := range runs {
		past, err := read(ctx, c, id, run.GetExecution().GetRunId())
		if err != nil {
			return nil, err
		}
		all = append(all, past)
	}
	return all, nil
}

// runsOf lists the executions of a workflow ID, latest first.
func runsOf(ctx context.Context, c client.Client, namespace, id string) ([]*workflowpb.WorkflowExecutionInfo, error) {
	var runs []*workflowpb.WorkflowExecutionInfo
	request := &workflowservice.ListWorkflowExecutionsRequest{Namespace: namespace, Query: fmt.Sprintf("WorkflowId = '%s'", id)}
	for {
		page, err := c.ListWorkflow(ctx, request)
		if err != nil {
			return nil, err
		}
		runs = append(runs, page.GetExecutions()...)
		if request.NextPageToken = page.GetNextPageToken(); len(request.NextPageToken) == 0 {
			break
		}
	}
	slices.SortFunc(runs, func(a, b *workflowpb.WorkflowExecutionInfo) int {
		return b.GetStartTime().AsTime().Compare(a.GetStartTime().AsTime())
	})
	return runs, nil
}

func read(ctx context.Context, c client.Client, id, runID string) (Past, error) {
	events := c.GetWorkflowHistory(ctx, id, runID, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	p := newPastReducer(id, runID)
	for events.HasNext() {
		e, err := events.Next()
		if err != nil {
			return Past{}, err
		}
		p.apply(e)
	}
	return p.past(), nil
}

// pastReducer adds to a view what only a look back wants: who asked, and each playbook run.
type pastReducer struct {
	*reducer
	runID     string
	by        string
	check     bool
	playbooks map[int64]*PlaybookRun // by the id of their scheduled event
	order     []int64
}

func newPastReducer(id, runID string) *pastReducer {
	return &pastReducer{reducer: newReducer(id), runID: runID, playbooks: map[int64]*PlaybookRun{}}
}

func (p *pastReducer) past() Past {
	past := Past{
		Operation: p.kind, RunID: p.runID, Check: p.check, RequestedBy: p.by, Started: p.op.Started, Ended: p.op.Ended, State: p.op.State,
		Message: p.op.Message, Steps: p.op.Steps, Playbooks: []PlaybookRun{},
	}
	if p.status == enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED {
		past.State = render.Cancelled
	}
	for _, id := range p.order {
		past.Playbooks = append(past.Playbooks, *p.playbooks[id])
	}
	return past
}

func (p *pastReducer) apply(e *historypb.HistoryEvent) {
	p.reducer.apply(e)
	at := e.GetEventTime().AsTime()
	switch e.GetEventType() {
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED:
		var in struct {
			RequestedBy string `json:"requestedBy"`
			Check       bool   `json:"check"`
		}
		decode(e.GetWorkflowExecutionStartedEventAttributes().GetInput(), &in)
		p.by, p.check = in.RequestedBy, in.Check
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
		a := e.GetActivityTaskScheduledEventAttributes()
		if a.GetActivityType().GetName() != activities.AnsibleRun {
			return
		}
		var in ansible.RunIn
		decode(a.GetInput(), &in)
		source := in.Ansible.Source
		if in.Ansible.Pull != nil {
			source = &manifest.GitSource{URL: in.Ansible.Pull.URL}
		}
		p.playbooks[e.GetEventId()] = &PlaybookRun{
			Playbook: in.Ansible.Playbook, Bundle: in.Bundle, Source: source, Started: at, Attempts: 1, State: render.Running,
		}
		p.order = append(p.order, e.GetEventId())
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_STARTED: // written with the end, so it has the last attempt
		a := e.GetActivityTaskStartedEventAttributes()
		if run := p.playbooks[a.GetScheduledEventId()]; run != nil {
			run.Attempts = int(a.GetAttempt())
		}
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
		a := e.GetActivityTaskCompletedEventAttributes()
		p.ran(a.GetScheduledEventId(), at, render.Done, a.GetResult(), "")
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_FAILED:
		a := e.GetActivityTaskFailedEventAttributes()
		p.ran(a.GetScheduledEventId(), at, render.Failed, detailsOf(a.GetFailure()), words(a.GetFailure()))
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT:
		a := e.GetActivityTaskTimedOutEventAttributes()
		p.ran(a.GetScheduledEventId(), at, render.Failed, nil, words(a.GetFailure()))
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_CANCELED:
		a := e.GetActivityTaskCanceledEventAttributes()
		p.ran(a.GetScheduledEventId(), at, render.Cancelled, a.GetDetails(), "")
	}
}

// ran settles a playbook run; out is an ansible.RunOut where it is known which run it was.
func (p *pastReducer) ran(scheduled int64, at time.Time, state render.State, out *commonpb.Payloads, message string) {
	run := p.playbooks[scheduled]
	if run == nil {
		return
	}
	var known ansible.RunOut
	decode(out, &known)
	run.Ended, run.State, run.Message, run.RunID, run.Recap = at, state, message, known.RunID, known.Recap
	run.Requirements = known.Requirements
}

// detailsOf are the details of the innermost application failure.
func detailsOf(f *failurepb.Failure) *commonpb.Payloads {
	for ; f != nil; f = f.GetCause() {
		if app := f.GetApplicationFailureInfo(); app != nil {
			return app.GetDetails()
		}
	}
	return nil
}

// decode reads the first value; one that cannot be read leaves v as it is, since what an
// older burrow wrote is shown as far as it goes.
func decode(values *commonpb.Payloads, v any) {
	if p := values.GetPayloads(); len(p) > 0 {
		_ = json.Unmarshal(p[0].GetData(), v)
	}
}
