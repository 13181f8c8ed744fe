package lab

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"

	"golang.org/x/sys/unix"
)

// self is the running binary, whatever became of its file.
const self = "/proc/self/exe"

// Run makes the host, runs argv in it with the caller's standard streams, environment
// and working directory, takes the host away with everything in it, and gives argv's
// exit code (128 + signal when a signal ended it).
//
// Errors: [ErrNotRoot]; a namespace, mount or service that could not be had.
func (h Host) Run(argv ...string) (int, error) {
	if os.Geteuid() != 0 {
		return 0, ErrNotRoot
	}
	if h.Name == "" {
		h.Name = "lab"
	}
	// The death signal belongs to the thread that forks, so that thread must stay.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	t := task{Host: h, Argv: argv}
	if h.has(Internet) {
		t.Resolv = "nameserver " + slirpResolver + "\n"
	}
	outside, inside, err := pipes()
	if err != nil {
		return 0, err
	}
	defer outside.close()
	init, err := t.start(inside)
	inside.close()
	if err != nil {
		return 0, err
	}
	stop := forward(init.Process)
	defer stop()

	detach, err := h.attach(init.Process.Pid, outside)
	if err != nil {
		return 0, errors.Join(err, init.Process.Kill(), ignoreExit(init.Wait()))
	}
	defer detach()
	err = init.Wait()
	return exitCode(init.ProcessState), ignoreExit(err)
}

// start forks the host's init into its namespaces.
func (t task) start(ends pipeEnds) (*exec.Cmd, error) {
	text, err := json.Marshal(t)
	if err != nil {
		return nil, fmt.Errorf("encode task: %w", err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), stageEnv+"="+string(text))
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.ExtraFiles = []*os.File{ends.read, ends.write}
	cmd.SysProcAttr = &unix.SysProcAttr{
		Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWPID,
		Pdeathsig:  unix.SIGKILL,
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("make namespaces: %w", err)
	}
	return cmd, nil
}

// attach does the outside's part: waits until init stands in its namespaces, connects
// the host to the Internet if it needs that, and lets init go on.
func (h Host) attach(pid int, ends pipeEnds) (detach func(), err error) {
	detach = func() {}
	if _, err := io.ReadFull(ends.read, make([]byte, 1)); err != nil {
		return nil, fmt.Errorf("wait for the host's init: %w", err)
	}
	if h.has(Internet) {
		if detach, err = connect(pid); err != nil {
			return nil, err
		}
	}
	if _, err := ends.write.Write([]byte{1}); err != nil {
		detach()
		return nil, fmt.Errorf("let the host's init go on: %w", err)
	}
	return detach, nil
}

// pipeEnds is one side of a two-way conversation.
type pipeEnds struct{ read, write *os.File }

func (p pipeEnds) close() {
	_ = p.read.Close()
	_ = p.write.Close()
}

func pipes() (a, b pipeEnds, err error) {
	if a.read, b.write, err = os.Pipe(); err != nil {
		return a, b, err
	}
	if b.read, a.write, err = os.Pipe(); err != nil {
		a.read.Close()
		b.write.Close()
	}
	return a, b, err
}

// forward hands the signals that end a program to p, until stop is called.
func forward(p *os.Process) (stop func()) {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, unix.SIGINT, unix.SIGTERM, unix.SIGQUIT, unix.SIGHUP)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for s := range signals {
			_ = p.Signal(s)
		}
	}()
	return func() {
		signal.Stop(signals)
		close(signals)
		<-done
	}
}

func exitCode(s *os.ProcessState) int {
	status, ok := s.Sys().(unix.WaitStatus)
	if ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return s.ExitCode()
}

// ignoreExit drops the error that only says that the process ended badly: its code says so.
func ignoreExit(err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return nil
	}
	return err
}
