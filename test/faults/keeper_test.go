package faults

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"burrow.dev/burrow/internal/supervise"
)

// keeper runs a part of the installation and starts it again at once whenever it dies:
// `burrow up` waits longer after each death, which is right for users, not for a hundred
// ordered deaths.
type keeper struct {
	log string
	env []string

	mu      sync.Mutex
	part    supervise.Part
	wanted  bool
	process *os.Process
	ended   chan struct{} // of the running process
	starts  int
}

func newKeeper(folder string, part supervise.Part, env ...string) *keeper {
	return &keeper{part: part, log: filepath.Join(folder, "log", part.Name+".log"), env: env}
}

// start runs the part and keeps it running until stop.
func (k *keeper) start() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.wanted = true
	return k.spawn()
}

// spawn starts a process; whoever calls holds mu.
func (k *keeper) spawn() error {
	out, err := os.OpenFile(k.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer out.Close()
	cmd := exec.Command(k.part.Command.Path, k.part.Command.Args...)
	cmd.Env = append(os.Environ(), k.env...)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", k.part.Name, err)
	}
	k.process, k.ended = cmd.Process, make(chan struct{})
	k.starts++
	go func(ended chan struct{}) {
		_ = cmd.Wait() // how it ended is the fault's business
		k.mu.Lock()
		defer k.mu.Unlock()
		close(ended)
		if k.wanted {
			_ = k.spawn() // a binary that cannot be started shows as a part that is never ready
		}
	}(k.ended)
	return nil
}

// signal reaches the running process.
func (k *keeper) signal(s syscall.Signal) {
	k.mu.Lock()
	defer k.mu.Unlock()
	_ = k.process.Signal(s) // one that has just died is as good
}

// pid is that of the running process.
func (k *keeper) pid() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.process.Pid
}

// crash kills the process, which is started again at once.
func (k *keeper) crash() { k.signal(syscall.SIGKILL) }

// kill ends the part for good, at once.
func (k *keeper) kill() {
	k.mu.Lock()
	k.wanted = false
	process, ended := k.process, k.ended
	k.mu.Unlock()
	_ = process.Kill()
	<-ended
}

// stop ends the part for good, in order, and waits.
func (k *keeper) stop() {
	k.mu.Lock()
	if !k.wanted {
		k.mu.Unlock()
		return
	}
	k.wanted = false
	process, ended := k.process, k.ended
	k.mu.Unlock()
	_ = process.Signal(syscall.SIGCONT)
	_ = process.Signal(syscall.SIGTERM)
	select {
	case <-ended:
	case <-time.After(k.part.StopGrace):
		_ = process.Kill()
		<-ended
	}
}

// ready waits until the part answers.
func (k *keeper) ready(ctx context.Context) error {
	return until(ctx, k.part.Name+" ready", func() error { return k.part.Ready(ctx, k.pid()) })
}

// pollEvery is how often a condition is looked at.
const pollEvery = 50 * time.Millisecond

// until waits for a condition, which says what it still misses.
func until(ctx context.Context, what string, condition func() error) error {
	return untilEvery(ctx, pollEvery, what, condition)
}

// untilEvery is until for conditions that take long to look at.
func untilEvery(ctx context.Context, every time.Duration, what string, condition func() error) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	var missing error
	for {
		err := condition()
		if err == nil {
			return nil
		}
		if missing == nil || ctx.Err() == nil { // the last one may only say that time is up
			missing = err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waited for: %s: %w", what, missing)
		case <-tick.C:
		}
	}
}
