package supervise

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// process is a running part, a child of ours or adopted.
type process struct {
	id     Identity
	exited chan struct{}
	// outcome is set before exited is closed.
	outcome string

	mu sync.Mutex
	fd int // pidfd, -1 once released
}

// gate is run by a shell in the new process: it waits for a line on fd 3, then
// becomes the program. When the supervisor dies before it has recorded the process,
// the read fails and the program never runs. Pid and start time stay through exec.
const gate = `read -r go <&3 || exit 1; exec 3<&-; exec "$0" "$@"`

// spawn starts a command in a process group of its own, with its output appended to
// the log, and lets it run once record has kept its identity.
func spawn(command Command, log string, record func(Identity) error) (*process, error) {
	if _, err := exec.LookPath(command.Path); err != nil {
		return nil, fmt.Errorf("start %s: %w", command.Path, err)
	}
	output, err := os.OpenFile(log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o640)
	if err != nil {
		return nil, fmt.Errorf("start %s: open log: %w", command.Path, err)
	}
	defer output.Close()
	waiting, release, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: make pipe: %w", command.Path, err)
	}
	defer waiting.Close()
	defer release.Close()

	child := exec.Command("/bin/sh", append([]string{"-c", gate, command.Path}, command.Args...)...)
	child.Env = append(environment(), command.Env...)
	child.Stdout, child.Stderr = output, output
	child.ExtraFiles = []*os.File{waiting}
	child.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := child.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", command.Path, err)
	}
	p := &process{exited: make(chan struct{}), fd: -1}
	p.id, err = IdentityOf(child.Process.Pid)
	if err == nil {
		p.fd, err = unix.PidfdOpen(child.Process.Pid, 0)
	}
	if err == nil {
		err = record(p.id)
	}
	if err == nil {
		_, err = release.WriteString("go\n")
	}
	if err != nil { // closing the pipe ends the shell
		release.Close()
		return nil, errors.Join(fmt.Errorf("start %s: %w", command.Path, err), child.Wait())
	}
	go func() {
		_ = child.Wait() // how it ended is in ProcessState
		p.end(child.ProcessState.String())
	}()
	return p, nil
}

// adopt takes a process over that an earlier supervisor started.
func adopt(id Identity) (*process, error) {
	fd, err := id.open()
	if err != nil {
		return nil, err
	}
	p := &process{id: id, exited: make(chan struct{}), fd: fd}
	go func() {
		awaitExit(fd)
		p.end("ended (adopted: its exit code is not known)")
	}()
	return p, nil
}

// awaitExit blocks until the process of a pidfd has ended.
func awaitExit(fd int) {
	watched := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	for {
		n, err := unix.Poll(watched, -1)
		if n > 0 || (err != nil && !errors.Is(err, syscall.EINTR)) {
			return
		}
	}
}

// end notes the outcome and gives the pidfd back.
func (p *process) end(outcome string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.outcome = outcome
	if p.fd >= 0 {
		unix.Close(p.fd)
		p.fd = -1
	}
	close(p.exited)
}

// signal reaches this process or none.
func (p *process) signal(signal syscall.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fd < 0 {
		return ErrGone
	}
	err := unix.PidfdSendSignal(p.fd, signal, nil, 0)
	if errors.Is(err, syscall.ESRCH) {
		return ErrGone
	}
	if err != nil {
		return fmt.Errorf("process %d: send %s: %w", p.id.PID, signal, err)
	}
	return nil
}

// stop asks the process to end, kills it after grace, and returns when it is gone.
// It tells whether the process had to be killed.
func (p *process) stop(grace time.Duration) (killed bool, err error) {
	if err := p.signal(syscall.SIGTERM); err != nil {
		if errors.Is(err, ErrGone) {
			err = nil
		}
		return false, err
	}
	limit, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	select {
	case <-p.exited:
		return false, nil
	case <-limit.Done():
	}
	if err := p.signal(syscall.SIGKILL); err != nil && !errors.Is(err, ErrGone) {
		return false, err
	}
	<-p.exited
	return true, nil
}

// environment is the supervisor's own without what a service manager meant for it alone.
func environment() []string {
	var kept []string
	for _, entry := range os.Environ() {
		name, _, _ := strings.Cut(entry, "=")
		switch name {
		case "NOTIFY_SOCKET", "WATCHDOG_PID", "WATCHDOG_USEC", "LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES":
			continue
		}
		kept = append(kept, entry)
	}
	return kept
}
