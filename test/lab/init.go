package lab

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"

	"golang.org/x/sys/unix"
)

// File descriptors of init's side of the conversation with its supervisor.
const (
	fdFromSupervisor = 3
	fdToSupervisor   = 4
)

// init is the life of pid 1: make the host, start its services, run the command, reap
// whatever ends. When it returns, the kernel ends the rest.
func (t task) init() (int, error) {
	if err := unix.Sethostname([]byte(t.Host.Name)); err != nil {
		return 0, fmt.Errorf("set host name: %w", err)
	}
	if err := t.mounts(); err != nil {
		return 0, err
	}
	if err := output("ip", "link", "set", "lo", "up"); err != nil {
		return 0, err
	}
	if err := handshake(); err != nil {
		return 0, err
	}
	for _, need := range t.Host.Needs {
		if err := start(need); err != nil {
			return 0, fmt.Errorf("start %s: %w", need, err)
		}
	}
	return t.run()
}

// handshake tells the supervisor that the namespaces are there and waits for its leave.
func handshake() error {
	from, to := os.NewFile(fdFromSupervisor, "supervisor"), os.NewFile(fdToSupervisor, "supervisor")
	defer from.Close()
	defer to.Close()
	if _, err := to.Write([]byte{1}); err != nil {
		return fmt.Errorf("tell supervisor: %w", err)
	}
	if _, err := io.ReadFull(from, make([]byte, 1)); err != nil {
		return fmt.Errorf("wait for supervisor: %w", err)
	}
	return nil
}

// run starts the command and reaps every child until it has ended. No exec.Cmd may be
// waited for beside it: wait4(-1) takes them all.
func (t task) run() (int, error) {
	cmd := exec.Command(t.Argv[0], t.Argv[1:]...)
	cmd.Env = append(withoutStage(os.Environ()), Inside+"="+t.Host.Name)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	stop := forward(cmd.Process)
	defer stop()
	signal.Ignore(unix.SIGPIPE)
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, 0, nil)
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return 0, fmt.Errorf("reap: %w", err)
		case pid != cmd.Process.Pid:
			continue
		case status.Signaled():
			return 128 + int(status.Signal()), nil
		default:
			return status.ExitStatus(), nil
		}
	}
}

func withoutStage(env []string) []string {
	var kept []string
	for _, kv := range env {
		if len(kv) < len(stageEnv) || kv[:len(stageEnv)] != stageEnv {
			kept = append(kept, kv)
		}
	}
	return kept
}

// output runs a command that says nothing when it works, and puts what it said into the error.
func output(name string, args ...string) error {
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %v: %w: %s", name, args, err, out)
	}
	return nil
}
