package follow

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/activities/ansible"
	"burrow.dev/burrow/activities/guest"
	"burrow.dev/burrow/activities/image"
	"burrow.dev/burrow/cli/render"
	"burrow.dev/burrow/manifest"
)

// payload is Temporal's envelope of one value.
type payload = commonpb.Payload

// silence is how long a task may wait for a worker before we look whether one polls.
const silence = 3 * time.Second

// overlay adds what only Temporal's pending activities tell: attempts, the last error,
// the next try, and the heartbeat. It returns the queue of a task that no worker has
// taken for a while, "" when there is none.
func (r *reducer) overlay(d *workflowservice.DescribeWorkflowExecutionResponse, now time.Time) (waiting string) {
	for _, p := range d.GetPendingActivities() {
		act := r.byID[p.GetActivityId()]
		if act == nil {
			continue
		}
		s := r.step(act.step)
		s.Attempt = int(p.GetAttempt())
		if f := p.GetLastFailure(); f != nil {
			s.LastError = words(f)
		}
		scheduled := p.GetState() == enumspb.PENDING_ACTIVITY_STATE_SCHEDULED
		switch {
		case scheduled && p.GetAttempt() > 1:
			s.State, s.NextTry = render.Retrying, p.GetNextAttemptScheduleTime().AsTime()
		case scheduled:
			if now.Sub(p.GetScheduledTime().AsTime()) > silence {
				waiting = queueOf(p)
			}
		case act.step == stepUndo:
			s.State, s.NextTry = render.Undoing, time.Time{}
		default:
			s.State, s.NextTry = render.Running, time.Time{}
		}
		if beat := p.GetHeartbeatDetails().GetPayloads(); len(beat) > 0 {
			if text := beatText(act.name, beat[0].GetData()); text != "" {
				s.Detail = text
			}
		}
	}
	if t := d.GetPendingWorkflowTask(); t.GetState() == enumspb.PENDING_WORKFLOW_TASK_STATE_SCHEDULED &&
		now.Sub(t.GetScheduledTime().AsTime()) > silence {
		waiting = activities.ControlQueue
	}
	return waiting
}

func queueOf(p *workflowpb.PendingActivityInfo) string {
	if q := p.GetActivityOptions().GetTaskQueue().GetName(); q != "" {
		return q
	}
	return activities.ControlQueue
}

// beatText says what an activity's heartbeat means to a person.
func beatText(activity string, data []byte) string {
	switch activity {
	case activities.GuestWaitReady:
		var p guest.Progress
		if json.Unmarshal(data, &p) != nil || p.Stage == "" {
			return ""
		}
		if p.Console == "" {
			return p.Stage
		}
		return p.Stage + "; console: " + render.Clean(p.Console)
	case activities.AnsibleRun:
		var p ansible.Progress
		if json.Unmarshal(data, &p) != nil || p.Task == "" {
			return ""
		}
		return strings.TrimSpace(render.Clean(p.Task) + "  " + recapText(p.Recap))
	case activities.ImageEnsure, activities.ImageImport, activities.ImageBuild:
		return bytesText(data)
	}
	return ""
}

func recapText(recap map[string]manifest.Recap) string {
	var sum manifest.Recap
	for _, r := range recap {
		sum.OK, sum.Changed, sum.Failed = sum.OK+r.OK, sum.Changed+r.Changed, sum.Failed+r.Failed
	}
	if sum == (manifest.Recap{}) {
		return ""
	}
	return fmt.Sprintf("(ok %d, changed %d, failed %d)", sum.OK, sum.Changed, sum.Failed)
}

// bytesText reads the image activities' heartbeat: a stage and bytes done of a total.
func bytesText(data []byte) string {
	var p image.Progress
	if json.Unmarshal(data, &p) != nil {
		return ""
	}
	return render.Clean(p.String())
}
