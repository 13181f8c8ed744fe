package workflows

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/activities/ansible"
	"burrow.dev/burrow/activities/guest"
	"burrow.dev/burrow/activities/state"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
)

func TestProvisionRunsItsStepsInOrderAndEndsRunning(t *testing.T) {
	w := newWorld(t)
	w.env.ExecuteWorkflow(ProvisionServer, dbServer())
	require.NoError(t, w.env.GetWorkflowError())
	calls := w.calls()
	order := []string{
		activities.StateBegin, activities.PlacePlace, activities.IPAMAllocate, activities.VolumeBuild, activities.NetworkProbe,
		activities.SeedWrite, activities.StateNote, activities.DomainStart, activities.NetworkWire, activities.DomainResume,
		activities.GuestWaitReady, activities.AnsibleRun, activities.StateFinish,
	}
	at := -1
	for _, name := range order {
		i := slices.Index(calls, name)
		require.Greater(t, i, at, "%s after what comes before it in %v", name, calls)
		at = i
	}
	var rec manifest.Record
	require.NoError(t, w.env.GetWorkflowResult(&rec))
	require.Equal(t, manifest.PhaseRunning, rec.Status.Phase)
	require.Equal(t, "kvm1", rec.Status.Host)
	require.Equal(t, "debian", rec.Status.Login)
	require.NotContains(t, calls, activities.DomainRemove)

	var p Progress
	v, err := w.env.QueryWorkflow(QueryProgress)
	require.NoError(t, err)
	require.NoError(t, v.Get(&p))
	for _, s := range p.Steps {
		require.Equal(t, StepDone, s.State, s.Name)
	}
}

func TestAServerIsWiredBeforeItsGuestRuns(t *testing.T) {
	w := newWorld(t)
	w.env.ExecuteWorkflow(ProvisionServer, dbServer())
	calls := w.calls()
	require.Less(t, slices.Index(calls, activities.NetworkWire), slices.Index(calls, activities.DomainResume))
}

func TestTransientErrorsAreRetriedUntilTheyAreOver(t *testing.T) {
	w := newWorld(t)
	w.fail = failing(activities.VolumeBuild, errs.Transient, 7)
	w.env.ExecuteWorkflow(ProvisionServer, dbServer())
	require.NoError(t, w.env.GetWorkflowError())
	require.Equal(t, 8, w.seen[activities.VolumeBuild])
}

func TestAPermanentErrorUndoesEverythingAndEndsFailedWithItsReason(t *testing.T) {
	w := newWorld(t)
	w.fail = failing(activities.AnsibleRun, errs.Permanent, 1)
	w.env.ExecuteWorkflow(ProvisionServer, dbServer())
	var app *temporal.ApplicationError
	require.ErrorAs(t, w.env.GetWorkflowError(), &app)
	require.Equal(t, "server/db: ansible.Run: no luck; try something else", app.Message())
	requireUndone(t, w.calls())
	require.Equal(t, app.Message(), w.last[activities.StateFail].(state.FailIn).Message)
}

func TestALatePermanentAnswerOfTheKeysStopsTheBuildBesideIt(t *testing.T) {
	w := newWorld(t)
	w.fail = failing(activities.AnsibleCheck, errs.Permanent, 1)
	w.env.ExecuteWorkflow(ProvisionServer, dbServer())
	require.ErrorContains(t, w.env.GetWorkflowError(), "ansible.Check: no luck")
	require.NotContains(t, w.calls(), activities.DomainStart)
}

func TestABrokenPlaybookHoldsAndRetryWithAnEditedOneGoesOn(t *testing.T) {
	w := newWorld(t)
	w.fail = failing(activities.AnsibleRun, errs.Operator, 1)
	w.env.RegisterDelayedCallback(func() {
		var p Progress
		v, err := w.env.QueryWorkflow(QueryProgress)
		require.NoError(t, err)
		require.NoError(t, v.Get(&p))
		require.Equal(t, manifest.PhaseHeld, p.Phase)
		require.Contains(t, p.Held, "no luck")
		w.env.UpdateWorkflow(UpdateRetry, "u1", callbacks(t), RetryIn{Bundle: "sha256:11"})
	}, time.Hour)
	w.env.ExecuteWorkflow(ProvisionServer, dbServer())
	require.NoError(t, w.env.GetWorkflowError())
	require.Equal(t, "sha256:11", w.last[activities.AnsibleRun].(ansible.RunIn).Bundle)
	require.NotContains(t, w.calls(), activities.DomainRemove)
	require.Equal(t, 1, w.seen[activities.DomainStart], "the server is not rebuilt")
}

func TestAnAbortedHoldUndoesEverything(t *testing.T) {
	w := newWorld(t)
	w.fail = failing(activities.AnsibleRun, errs.Operator, 1)
	w.env.RegisterDelayedCallback(func() { w.env.UpdateWorkflow(UpdateAbort, "u1", callbacks(t), DecisionIn{}) }, time.Hour)
	w.env.ExecuteWorkflow(ProvisionServer, dbServer())
	require.Error(t, w.env.GetWorkflowError())
	requireUndone(t, w.calls())
}

func TestASkippedPlaybookLeavesTheServerRunning(t *testing.T) {
	w := newWorld(t)
	w.fail = failing(activities.AnsibleRun, errs.Operator, 1)
	w.env.RegisterDelayedCallback(func() { w.env.UpdateWorkflow(UpdateSkip, "u1", callbacks(t), DecisionIn{}) }, time.Hour)
	w.env.ExecuteWorkflow(ProvisionServer, dbServer())
	require.NoError(t, w.env.GetWorkflowError())
	require.Contains(t, w.calls(), activities.StateFinish)
}

func TestDecisionsAreRefusedWhileNothingIsHeld(t *testing.T) {
	for _, update := range []string{UpdateRetry, UpdateSkip, UpdateAbort} {
		t.Run(update, func(t *testing.T) {
			w := newWorld(t)
			var rejected error
			w.env.RegisterDelayedCallback(func() {
				w.env.UpdateWorkflow(update, "u1", &updateCallback{t: t, reject: func(err error) { rejected = err }}, DecisionIn{})
			}, 0)
			w.env.ExecuteWorkflow(ProvisionServer, dbServer())
			require.ErrorContains(t, rejected, "server/db is not held")
		})
	}
}

func TestOperatorErrorsBeforeThePlaybookRollBackUnlessTheManifestSaysHold(t *testing.T) {
	w := newWorld(t)
	w.fail = failing(activities.VolumeBuild, errs.Operator, 1)
	w.env.ExecuteWorkflow(ProvisionServer, dbServer())
	require.Error(t, w.env.GetWorkflowError())
	require.Contains(t, w.calls(), activities.VolumeRemove, "the undo is registered before the step")

	w = newWorld(t)
	in := dbServer()
	in.Spec.OnFailure = manifest.OnFailureHold
	w.fail = failing(activities.VolumeBuild, errs.Operator, 1)
	w.env.RegisterDelayedCallback(func() { w.env.UpdateWorkflow(UpdateRetry, "u1", callbacks(t), RetryIn{}) }, time.Hour)
	w.env.ExecuteWorkflow(ProvisionServer, in)
	require.NoError(t, w.env.GetWorkflowError())
}

func TestCancellingUndoesEverythingAndTheRecordIsGone(t *testing.T) {
	w := newWorld(t)
	w.fail = failing(activities.AnsibleRun, errs.Operator, 1)
	w.env.RegisterDelayedCallback(w.env.CancelWorkflow, time.Hour)
	w.env.ExecuteWorkflow(ProvisionServer, dbServer())
	require.True(t, temporal.IsCanceledError(w.env.GetWorkflowError()))
	requireUndone(t, w.calls())
	require.Equal(t, activities.StateRemove, last(w.calls()))
}

func TestADeadlineThatPassesRollsBack(t *testing.T) {
	w := newWorld(t)
	in := dbServer()
	in.Spec.Deadline = "30m"
	w.fail = failing(activities.AnsibleRun, errs.Operator, 1)
	w.env.ExecuteWorkflow(ProvisionServer, in)
	require.ErrorContains(t, w.env.GetWorkflowError(), "its deadline of 30m0s has passed")
	requireUndone(t, w.calls())
}

func TestADeadlineThatPassesWhileTheEndIsWrittenComesTooLate(t *testing.T) {
	w := newWorld(t)
	undone := false
	w.env.ExecuteWorkflow(func(ctx workflow.Context) error {
		var op *operation
		body := sequence{step{stepFinish, func(workflow.Context) error {
			op.add(stepFinish, func(workflow.Context) error { undone = true; return nil })
			op.stop(errors.New("its deadline has passed")) // while the record is already settled
			return nil
		}}}
		op, err := begin(ctx, NameProvisionServer, "server/db", manifest.PhaseProvisioning, body)
		require.NoError(t, err)
		return op.run(ctx, body)
	})
	require.NoError(t, w.env.GetWorkflowError())
	require.False(t, undone, "what is on record as Running stays")
}

func TestADeadlineThatPassesBeforeTheEndIsKnownToBeWrittenComesTooLate(t *testing.T) {
	w := newWorld(t)
	undone := false
	w.env.ExecuteWorkflow(func(ctx workflow.Context) error {
		var op *operation
		body := sequence{step{stepFinish, func(ctx workflow.Context) error {
			op.add(stepFinish, func(workflow.Context) error { undone = true; return nil })
			op.stop(errors.New("its deadline has passed"))
			return op.finishRecord(ctx, manifest.KindServer, manifest.Record{})
		}}}
		op, err := begin(ctx, NameProvisionServer, "server/db", manifest.PhaseProvisioning, body)
		require.NoError(t, err)
		return op.run(ctx, body)
	})
	require.NoError(t, w.env.GetWorkflowError())
	require.Equal(t, 1, w.seen[activities.StateFinish])
	require.False(t, undone)
}

// TestACancelWhileAWorkerIsLostIsACancel: Temporal tries a cancelled activity no more, and
// says how its last attempt ended. (The test environment answers a cancel by itself, so the
// step stands for its activity here; test/faults has the real thing.)
func TestACancelWhileAWorkerIsLostIsACancel(t *testing.T) {
	for name, lost := range map[string]error{
		"heartbeat": temporal.NewHeartbeatTimeoutError(),
		"transient": temporal.NewApplicationErrorWithOptions("connection refused", string(errs.Transient), temporal.ApplicationErrorOptions{NonRetryable: true}),
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.env.RegisterDelayedCallback(w.env.CancelWorkflow, time.Minute)
			undone := false
			w.env.ExecuteWorkflow(func(ctx workflow.Context) error {
				var op *operation
				body := sequence{step{stepVolumes, func(ctx workflow.Context) error {
					op.add(stepVolumes, func(workflow.Context) error { undone = true; return nil })
					require.True(t, stopped(workflow.Sleep(ctx, time.Hour)))
					return lost
				}}}
				op, err := begin(ctx, NameProvisionServer, "server/db", manifest.PhaseProvisioning, body)
				require.NoError(t, err)
				return op.run(ctx, body)
			})
			require.True(t, temporal.IsCanceledError(w.env.GetWorkflowError()), w.env.GetWorkflowError())
			require.True(t, undone)
		})
	}
}

func TestAnOperationThatIsCancelledAsItsHoldEndsWaitsForNobody(t *testing.T) {
	w := newWorld(t)
	w.fail = func(name string, nth int) error {
		if name == activities.StateHold && nth == 2 {
			w.env.CancelWorkflow()
			return temporal.NewCanceledError()
		}
		return failing(activities.AnsibleRun, errs.Operator, 1)(name, nth)
	}
	w.env.RegisterDelayedCallback(func() { w.env.UpdateWorkflow(UpdateRetry, "u1", callbacks(t), RetryIn{}) }, time.Hour)
	w.env.ExecuteWorkflow(ProvisionServer, dbServer())
	require.True(t, temporal.IsCanceledError(w.env.GetWorkflowError()), w.env.GetWorkflowError())
	var p Progress
	v, err := w.env.QueryWorkflow(QueryProgress)
	require.NoError(t, err)
	require.NoError(t, v.Get(&p))
	require.Empty(t, p.Held)
}

func last(s []string) string { return s[len(s)-1] }

// updateCallback fails the test when an update does not end as it should.
type updateCallback struct {
	t      *testing.T
	reject func(error)
}

func callbacks(t *testing.T) *updateCallback { return &updateCallback{t: t} }

func (u *updateCallback) Accept() {}

func (u *updateCallback) Reject(err error) {
	if u.reject == nil {
		u.t.Errorf("update rejected: %v", err)
		return
	}
	u.reject(err)
}

func (u *updateCallback) Complete(_ any, err error) {
	if err != nil {
		u.t.Errorf("update failed: %v", err)
	}
}

func TestAGuestThatCannotBeLookedAtUntilTheTimeIsOverIsForAPerson(t *testing.T) {
	w := newWorld(t)
	w.fail = failing(activities.GuestWaitReady, errs.Transient, 1000)
	w.env.ExecuteWorkflow(ProvisionServer, dbServer())
	err := w.env.GetWorkflowError()
	require.ErrorContains(t, err, "server/db: wait until ready: the guest did not get there in 45m0s: server/db: guest.WaitReady: no luck")
	var app *temporal.ApplicationError
	require.ErrorAs(t, err, &app)
	require.Equal(t, string(errs.Operator), app.Type())
}

func TestAGuestThatIsNotReadyInTimeIsSaidToBeWhereItWas(t *testing.T) {
	require.Equal(t, "; it was at cloud-init", lastSeen(temporal.NewTimeoutError(enumspb.TIMEOUT_TYPE_SCHEDULE_TO_CLOSE, nil, guest.Progress{Stage: "cloud-init"})))
	require.Empty(t, lastSeen(temporal.NewTimeoutError(enumspb.TIMEOUT_TYPE_SCHEDULE_TO_CLOSE, nil)))
}
