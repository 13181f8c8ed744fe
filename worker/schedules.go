package worker

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/workflows"
)

const (
	// scheduleAgain is how often the schedules are tried again while Temporal is not there.
	scheduleAgain = 5 * time.Second
	// scheduleKeep is how often they are looked at after that: Temporal's store may have
	// been lost, and they with it.
	scheduleKeep = 5 * time.Minute
	// catchUp: a sweep that was missed while nothing ran needs no more than the next one.
	catchUp = time.Minute
	// scheduleMade is the key in the memo of a schedule's action that says what it was made from.
	scheduleMade = "madeFrom"
)

// schedule is one of ours, as it is to be.
type schedule struct {
	id, workflow string
	every        time.Duration
}

func schedules() []schedule {
	return []schedule{
		{workflows.IDSweep, workflows.NameSweep, workflows.SweepEvery},
		{workflows.IDDrift, workflows.NameDrift, workflows.DriftEvery},
	}
}

// keepSchedules makes the schedules of sweep and drift, and makes them again when they are
// lost, until ctx ends. One that a person paused stays paused.
func keepSchedules(ctx context.Context, p *parts) error {
	for {
		wait := scheduleKeep
		for _, s := range schedules() {
			if err := ensureSchedule(ctx, p.temporal, s); err != nil && ctx.Err() == nil {
				p.Log.Warn("schedule not made yet", slog.String("schedule", s.id), slog.Any("error", err))
				wait = scheduleAgain
			}
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C:
		}
	}
}

// madeFrom tells versions of a schedule apart: an upgrade may change what it starts.
func madeFrom(spec client.ScheduleSpec, action *client.ScheduleWorkflowAction) (string, error) {
	encoded, err := json.Marshal(struct {
		Spec   client.ScheduleSpec
		Action *client.ScheduleWorkflowAction
	}{spec, action})
	return fmt.Sprintf("%x", sha256.Sum256(encoded)), err
}

// madeOf gives what a schedule that is there was made from; "" is not said.
func madeOf(there *client.ScheduleDescription) string {
	action, ok := there.Schedule.Action.(*client.ScheduleWorkflowAction)
	if !ok {
		return ""
	}
	payload, ok := action.Memo[scheduleMade].(*commonpb.Payload)
	if !ok {
		return ""
	}
	var made string
	if converter.GetDefaultDataConverter().FromPayload(payload, &made) != nil {
		return ""
	}
	return made
}

// ensureSchedule makes a schedule; one that was made from something else, as by another
// version of burrow, is made as it is to be.
func ensureSchedule(ctx context.Context, c client.Client, s schedule) error {
	spec := client.ScheduleSpec{Intervals: []client.ScheduleIntervalSpec{{Every: s.every}}}
	action := &client.ScheduleWorkflowAction{
		ID: "scheduled-" + s.id, Workflow: workflows.NameScheduled, TaskQueue: activities.ControlQueue,
		Args: []any{workflows.ScheduledIn{
			Workflow: s.workflow,
			Input:    workflows.SweepIn{GraceSeconds: workflows.DefaultGraceSeconds, RequestedBy: "schedule"},
		}},
		StaticSummary: s.id + " of everything, every " + s.every.String(),
	}
	made, err := madeFrom(spec, action)
	if err != nil {
		return err
	}
	action.Memo = map[string]any{scheduleMade: made}
	_, err = c.ScheduleClient().Create(ctx, client.ScheduleOptions{
		ID: s.id, Spec: spec, Action: action, Overlap: enumspb.SCHEDULE_OVERLAP_POLICY_SKIP, CatchupWindow: catchUp,
	})
	if err == nil || !errors.Is(err, temporal.ErrScheduleAlreadyRunning) {
		return err
	}
	handle := c.ScheduleClient().GetHandle(ctx, s.id)
	there, err := handle.Describe(ctx)
	var gone *serviceerror.NotFound
	if errors.As(err, &gone) {
		return errors.New("it has just been removed")
	}
	if err != nil {
		return err
	}
	if there.Schedule.Spec != nil && reflect.DeepEqual(there.Schedule.Spec.Intervals, spec.Intervals) && madeOf(there) == made {
		return nil
	}
	return handle.Update(ctx, client.ScheduleUpdateOptions{
		DoUpdate: func(in client.ScheduleUpdateInput) (*client.ScheduleUpdate, error) {
			in.Description.Schedule.Spec, in.Description.Schedule.Action = &spec, action
			return &client.ScheduleUpdate{Schedule: &in.Description.Schedule}, nil
		},
	})
}
