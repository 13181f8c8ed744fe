package hostnet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// stopTimeout is how long dnsmasq gets to end before it is killed: it has nothing to save.
const stopTimeout = 5 * time.Second

// hasArgument tells whether a living process has flag on its command line; one that has
// ended and waits for its parent has no command line.
func hasArgument(pid int, flag string) bool {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
	if err != nil {
		return false
	}
	args := strings.Split(string(text), "\x00")
	for _, arg := range args[1:] {
		if arg == flag {
			return true
		}
	}
	return false
}

// inNamespace tells whether a process is in the namespace of that name as it is now.
func inNamespace(pid int, name string) bool {
	var own, named unix.Stat_t
	if unix.Stat(filepath.Join("/proc", strconv.Itoa(pid), "ns/net"), &own) != nil || unix.Stat(namespacePath(name), &named) != nil {
		return false
	}
	return own.Ino == named.Ino && own.Dev == named.Dev
}

// process is held by a descriptor: a pid that was used again meanwhile is never hit.
type process struct {
	pid, fd int
}

// holdProcess holds the process if it is the one with flag; nil when that has ended.
func holdProcess(pid int, flag string) (*process, error) {
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("hold process %d: %w", pid, err)
	}
	p := &process{pid: pid, fd: fd}
	if !hasArgument(pid, flag) {
		p.release()
		return nil, nil
	}
	return p, nil
}

func (p *process) release() { _ = unix.Close(p.fd) }

// signal sends a signal; a process that has ended is success.
func (p *process) signal(signal unix.Signal) error {
	err := unix.PidfdSendSignal(p.fd, signal, nil, 0)
	if err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("signal process %d: %w", p.pid, err)
	}
	return nil
}

// wait tells whether the process has ended, its sockets with it, within some time.
func (p *process) wait(ctx context.Context, limit time.Duration) (bool, error) {
	const slice = 20 * time.Millisecond // how late a cancelled context is seen
	for deadline := time.Now().Add(limit); time.Now().Before(deadline); {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(p.fd), Events: unix.POLLIN}}, int(slice/time.Millisecond))
		if err != nil && !errors.Is(err, unix.EINTR) {
			return false, fmt.Errorf("wait for process %d: %w", p.pid, err)
		}
		if n > 0 {
			return true, nil
		}
	}
	return false, nil
}

// signalProcess signals the process if it still is the one with flag. Gone is success.
func signalProcess(pid int, flag string, signal unix.Signal) error {
	p, err := holdProcess(pid, flag)
	if p == nil {
		return err
	}
	defer p.release()
	return p.signal(signal)
}

// endProcess ends the process with flag and waits until it is gone.
func endProcess(ctx context.Context, pid int, flag string) error {
	p, err := holdProcess(pid, flag)
	if p == nil {
		return err
	}
	defer p.release()
	for _, signal := range []unix.Signal{unix.SIGTERM, unix.SIGKILL} {
		if err := p.signal(signal); err != nil {
			return err
		}
		if ended, err := p.wait(ctx, stopTimeout); ended || err != nil {
			return err
		}
	}
	return fmt.Errorf("process %d does not end", pid)
}

// isMissingProgram tells whether err says that a program is not installed.
func isMissingProgram(err error) bool {
	return errors.Is(err, exec.ErrNotFound)
}
