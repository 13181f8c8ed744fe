package worker

import (
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"burrow.dev/burrow/workflows"
)

const (
	// hostWide: each step on a host is mostly waiting for libvirt, a guest or Ansible; a
	// slow server must not block the others (pitfall 64).
	hostWide = 64
	// controlWide bounds the transactions in flight of one control worker.
	controlWide = 64
	// stopWait is how long activities may go on when the worker is asked to stop; they
	// start again elsewhere or later.
	stopWait = 5 * time.Second
)

// options are what all our workers share.
func (p *parts) options(wide int) worker.Options {
	return worker.Options{
		MaxConcurrentActivityExecutionSize: wide,
		MaxHeartbeatThrottleInterval:       beatEvery,
		DefaultHeartbeatThrottleInterval:   beatEvery,
		WorkerStopTimeout:                  stopWait,
		DisableRegistrationAliasing:        true,
		Interceptors:                       append([]interceptor.WorkerInterceptor{&edge{}}, p.Interceptors...),
	}
}

// newWorker makes a worker of a task queue with activities under their registered names.
func (p *parts) newWorker(queue string, wide int, activities map[string]any) worker.Worker {
	w := worker.New(p.temporal, queue, p.options(wide))
	for name, run := range activities {
		w.RegisterActivityWithOptions(run, activity.RegisterOptions{Name: name})
	}
	return w
}

// registerWorkflows registers every workflow under its name.
func registerWorkflows(w worker.WorkflowRegistry) {
	for name, run := range workflows.Registered() {
		w.RegisterWorkflowWithOptions(run, workflow.RegisterOptions{Name: name})
	}
}
