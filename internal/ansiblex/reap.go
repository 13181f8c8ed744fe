package ansiblex

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"
)

const (
	// markVariable is in the environment of everything a run starts.
	markVariable = "BURROW_RUN"
	// goneWithin bounds the wait for killed processes to go; one in the middle of disk I/O
	// may take seconds.
	goneWithin = 10 * time.Second
	// killEvery is how often what is left is looked for and killed again: a process may
	// have forked between two looks.
	killEvery = 20 * time.Millisecond
)

// Stop kills everything that a run started and proves that it is gone: the recorded
// process, its group, its PID namespace with it, and whatever carries the run's mark.
// Nothing there is success.
func Stop(ctx context.Context, rec Record) error {
	ctx, cancel := context.WithTimeout(ctx, goneWithin)
	defer cancel()
	ticker := time.NewTicker(killEvery)
	defer ticker.Stop()
	for {
		left, err := rec.kill()
		if err != nil {
			return fmt.Errorf("stop run %s: %w", rec.ID, err)
		}
		if left == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("stop run %s: %d processes are still alive: %w", rec.ID, left, ctx.Err())
		case <-ticker.C:
		}
	}
}

// kill sends SIGKILL to all that is alive and counts it.
func (r Record) kill() (int, error) {
	left := 0
	if p := r.Process; p != nil && p.alive() {
		left++
		// The group first: with the leader gone its number could be another's.
		if err := killed(syscall.Kill(-p.PID, syscall.SIGKILL)); err != nil {
			return left, err
		}
		if err := killed(syscall.Kill(p.PID, syscall.SIGKILL)); err != nil {
			return left, err
		}
	}
	marked, err := markedProcesses(r.ID)
	if err != nil {
		return left, err
	}
	for _, pid := range marked {
		if err := killed(syscall.Kill(pid, syscall.SIGKILL)); err != nil {
			return left, err
		}
	}
	return left + len(marked), nil
}

func killed(err error) error {
	if errors.Is(err, syscall.ESRCH) || errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}

// markedProcesses finds the processes whose environment carries the run's mark.
func markedProcesses(runID string) ([]int, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	want := []byte(markVariable + "=" + runID)
	var pids []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		env, err := os.ReadFile("/proc/" + e.Name() + "/environ")
		if err != nil || !hasLine(env, want) {
			continue // gone meanwhile, a kernel thread, or not ours
		}
		if _, err := startTime(pid); err != nil {
			continue // a zombie waits for its parent only
		}
		pids = append(pids, pid)
	}
	return pids, nil
}

func hasLine(env, want []byte) bool {
	for line := range bytes.SplitSeq(env, []byte{0}) {
		if bytes.Equal(line, want) {
			return true
		}
	}
	return false
}
