package supervise

import (
	"context"
	"time"
)

// Command is a program with its arguments.
type Command struct {
	// Path is absolute.
	Path string
	Args []string
	// Env is added to the supervisor's own environment.
	Env []string
}

// Part is one process that must run.
type Part struct {
	// Name in messages, log file and records: "devstack".
	Name    string
	Command Command
	// Version changes when a process that runs already must be replaced: its
	// configuration is another one.
	Version string
	// Ready gives nil when the part with this pid answers. It is asked every 25 ms and
	// must return by itself soon after ctx ends.
	Ready func(ctx context.Context, pid int) error
	// StopGrace is how long the part may take to end after SIGTERM.
	StopGrace time.Duration
}

// Event is one line of progress.
type Event struct {
	Part string
	// Text is a sentence without the part's name: "ready after 0.8 s".
	Text string
}
