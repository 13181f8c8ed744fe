package workflows

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/internal/errs"
)

// Every timeout and retry of the workflows, each with its reason.
const (
	// retryFirst: most transient faults (a restart, an election) are over in a second or two.
	retryFirst = time.Second
	// retryMost: a person who mends something should not wait longer than this to see it go on.
	retryMost = time.Minute
	// mendMost is the longest wait between two tries of an undo that needs a person: one that
	// needs weeks must not fill the history.
	mendMost = 30 * time.Minute

	// startsMost is how often a guest is started that goes off before it is on the wire: after
	// a death of libvirtd the second start holds, and what kills one five times goes on killing.
	startsMost = 5

	// wireTimeout bounds all attempts to wire NICs that were plugged into a running guest, after
	// which it is looked whether the guest still runs; Open vSwitch is back from a restart by then.
	wireTimeout = time.Minute
	// wireTimeoutMost: an Open vSwitch that is away for days must not fill the history.
	wireTimeoutMost = time.Hour

	// quickTimeout bounds what is a few etcd transactions: far above a leader election.
	quickTimeout = 30 * time.Second
	// heartbeatTimeout: a dead worker's step starts again within 15 s of its return; the
	// worker beats every 500 ms for every activity.
	heartbeatTimeout = 10 * time.Second
	// driverTimeout bounds libvirt, OVS and seed work that takes seconds; a capability
	// probe on a badly set up host takes 90 s (pitfall 65).
	driverTimeout = 5 * time.Minute
	// volumeTimeout bounds a full copy of a large image on a slow disk.
	volumeTimeout = 2 * time.Hour
	// imageTimeout bounds a download over a thin line, or a build from packages.
	imageTimeout = 4 * time.Hour
	// checkTimeout: a syntax check of a large playbook on a busy machine.
	checkTimeout = 5 * time.Minute
	// requirementsTimeout: the roles and collections of a large playbook over a thin line; the
	// check ends its own try after ten minutes, with the reason.
	requirementsTimeout = 15 * time.Minute
	// readyTimeout: a guest under emulation needs two minutes alone, and many share a host.
	readyTimeout = 45 * time.Minute
	// awaitTimeout is one attempt to wait for an open operation, which may take longer than
	// any playbook; then the next attempt goes on waiting.
	awaitTimeout = readyTimeout + defaultPlaybookTimeout
	// rebuildGraceSeconds: what the guest has not written to its data disks yet, it should; its
	// boot disk goes anyway, so nobody waits longer for it.
	rebuildGraceSeconds = 30
	// updateGraceSeconds is the CLI's own default for a restart.
	updateGraceSeconds = 60
	// shutdownSlack is added to the guest's own grace: longer than the minute that forcing it
	// off may take, so that the attempt ends with its reason before Temporal ends it.
	shutdownSlack = 2 * time.Minute
	// inputsHeadStart: keys and playbook may be wrong; two seconds of waiting find most of
	// that before anything is built, and cost little where the answer is slow.
	inputsHeadStart = 2 * time.Second
	// defaultPlaybookTimeout is the manifest's default, for specs that leave it out.
	defaultPlaybookTimeout = 2 * time.Hour
	// defaultPlaybookRetries is the manifest's default, for servers without a playbook of their own.
	defaultPlaybookRetries = 3
	// reachTimeout: a guest that runs answers in seconds, also when it is just being restarted.
	reachTimeout = 5 * time.Minute
	// playbookSlack lets the activity end its run itself, with the reason, before Temporal does.
	playbookSlack = 2 * time.Minute
	// lookTimeout bounds one look at a host's domains, disks and ports; a host that cannot
	// give it in that time is said to be away.
	lookTimeout = 2 * time.Minute
	// sweepTimeout bounds all attempts of one look or one removal of a sweep: the next
	// sweep is better than one that waits for etcd or a host.
	sweepTimeout = 5 * time.Minute
	// settleWait is how long a sweep waits for the operations that it started; they go on
	// without it.
	settleWait = 10 * time.Minute
	// defaultWidth: more documents at a time than this only queue at the disks.
	defaultWidth = 8
)

// transientForEver is the retry policy of every step: the class of an error decides
// whether it is retried at all, never a count.
func transientForEver() *temporal.RetryPolicy {
	return &temporal.RetryPolicy{
		InitialInterval:        retryFirst,
		BackoffCoefficient:     2,
		MaximumInterval:        retryMost,
		NonRetryableErrorTypes: []string{string(errs.Permanent), string(errs.Operator)},
	}
}

// target is a task queue with the time an activity may take there.
type target struct {
	queue string
	// host whose queue it is; empty: the control workers'.
	host    string
	timeout time.Duration
	// total bounds all attempts together; zero: no bound.
	total time.Duration
}

func onControl(timeout time.Duration) target {
	return target{queue: activities.ControlQueue, timeout: timeout}
}

func onHost(host string, timeout time.Duration) target {
	return target{queue: activities.HostQueue(host), host: host, timeout: timeout}
}

// within bounds all attempts together.
func (t target) within(total time.Duration) target {
	t.total = total
	return t
}

// options gives the activity options of a step at a place. A cancelled activity is
// waited for: its undo must not overtake it.
func (t target) options(summary string) workflow.ActivityOptions {
	return workflow.ActivityOptions{
		TaskQueue:              t.queue,
		StartToCloseTimeout:    t.timeout,
		ScheduleToCloseTimeout: t.total,
		HeartbeatTimeout:       heartbeatTimeout,
		WaitForCancellation:    true,
		RetryPolicy:            transientForEver(),
		Summary:                summary,
	}
}
