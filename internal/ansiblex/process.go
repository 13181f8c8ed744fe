package ansiblex

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"

	goexec "github.com/apenella/go-ansible/v2/pkg/execute/exec"

	"burrow.dev/burrow/internal/errs"
)

// eventsFD is the descriptor that our callback plugin writes to.
const eventsFD = 3

// launcher is the Executabler that go-ansible starts the command with. go-ansible sets
// nothing on a command that is not an *exec.Cmd: environment, folder, stdin and
// credentials are ours alone.
type launcher struct {
	dir     string
	env     []string
	user    User
	events  *os.File // write end, becomes eventsFD; nil: there are none
	started func(*Process) error
	ended   func() error // kills what the process left behind
	process *process
}

// Command implements Executabler; go-ansible does not use it.
func (l *launcher) Command(name string, arg ...string) goexec.Cmder {
	return l.CommandContext(context.Background(), name, arg...)
}

// CommandContext implements Executabler.
func (l *launcher) CommandContext(ctx context.Context, name string, arg ...string) goexec.Cmder {
	cmd := exec.Command(name, arg...)
	cmd.Dir, cmd.Env = l.dir, l.env
	if l.events != nil {
		cmd.ExtraFiles = []*os.File{l.events}
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Credential: l.user.credential(),
		// A session of its own: a group to kill, and no terminal to ask on.
		Setsid:     true,
		Cloneflags: syscall.CLONE_NEWPID,
	}
	l.process = &process{ctx: ctx, cmd: cmd, launcher: l, exited: make(chan struct{})}
	return l.process
}

// process is one program of Ansible: the Cmder that go-ansible drives.
type process struct {
	ctx      context.Context
	cmd      *exec.Cmd
	launcher *launcher
	pipes    []*os.File // ends that the child inherits
	watch    sync.WaitGroup
	exited   chan struct{}
	err      error // of Wait; valid after exited
	startErr error // of Start
}

// Start starts the process, writes it into the record, and sees to its end when the
// context ends. What cannot be recorded is not left running.
func (p *process) Start() error {
	err := p.cmd.Start()
	if errors.Is(err, syscall.EPERM) && p.cmd.SysProcAttr.Cloneflags != 0 {
		// No right to make a PID namespace (a container without CAP_SYS_ADMIN).
		p.cmd = again(p.cmd)
		p.cmd.SysProcAttr.Cloneflags = 0
		err = p.cmd.Start()
	}
	for _, w := range p.pipes {
		_ = w.Close()
	}
	if err != nil {
		p.startErr = err
		close(p.exited)
		return err
	}
	id, err := identify(p.cmd.Process.Pid, p.cmd.SysProcAttr.Cloneflags != 0)
	if err == nil {
		err = p.launcher.started(id)
	}
	if err != nil {
		p.startErr = err
		_ = p.kill()
	}
	p.watch.Go(p.await)
	return err
}

// again copies a command that failed to start: an exec.Cmd starts once.
func again(c *exec.Cmd) *exec.Cmd {
	attr := *c.SysProcAttr
	return &exec.Cmd{
		Path: c.Path, Args: c.Args, Env: c.Env, Dir: c.Dir, ExtraFiles: c.ExtraFiles,
		Stdout: c.Stdout, Stderr: c.Stderr, SysProcAttr: &attr,
	}
}

// await waits for the process, killing it when the context ends first.
func (p *process) await() {
	stop := context.AfterFunc(p.ctx, func() { _ = p.kill() })
	defer stop()
	p.err = p.cmd.Wait()
	// What is left holds the ends of our pipes open, an SSH master above all.
	if err := p.launcher.ended(); err != nil {
		p.err = errors.Join(p.err, err)
	}
	close(p.exited)
}

func (p *process) kill() error {
	return errors.Join(killed(syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)), killed(p.cmd.Process.Kill()))
}

// Wait implements Cmder. go-ansible expects an *exec.ExitError or nil, nothing else
// (it panics); the true result is in result.
func (p *process) Wait() error {
	<-p.exited
	p.watch.Wait()
	return nil
}

// result is the exit status, or why there is none.
func (p *process) result() (code int, signalled bool, err error) {
	var exit *exec.ExitError
	switch {
	case p.err == nil:
		return 0, false, nil
	case errors.As(p.err, &exit):
		status, ok := exit.Sys().(syscall.WaitStatus)
		return exit.ExitCode(), ok && status.Signaled(), nil
	}
	return 0, false, p.err
}

// StdoutPipe implements Cmder.
func (p *process) StdoutPipe() (io.ReadCloser, error) { return p.pipe(&p.cmd.Stdout) }

// StderrPipe implements Cmder.
func (p *process) StderrPipe() (io.ReadCloser, error) { return p.pipe(&p.cmd.Stderr) }

func (p *process) pipe(end *io.Writer) (io.ReadCloser, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	*end = w
	p.pipes = append(p.pipes, w)
	return r, nil
}

var errNotUsed = errors.New("not used")

// StdinPipe implements Cmder. There is no stdin: a prompt reads the end of a file.
func (p *process) StdinPipe() (io.WriteCloser, error) { return nil, errNotUsed }

// CombinedOutput implements Cmder.
func (p *process) CombinedOutput() ([]byte, error) { return nil, errNotUsed }

// Output implements Cmder.
func (p *process) Output() ([]byte, error) { return nil, errNotUsed }

// Run implements Cmder.
func (p *process) Run() error { return errNotUsed }

// Environ implements Cmder.
func (p *process) Environ() []string { return p.cmd.Env }

// String implements Cmder; the arguments may be anything, so only the program is named.
func (p *process) String() string { return p.cmd.Path }

// FindPlaybookProgram finds ansible-playbook. Absent is an Operator error.
func FindPlaybookProgram() (string, error) {
	path, err := exec.LookPath("ansible-playbook")
	if err != nil {
		return "", errs.NewOperator("ansible-playbook", "find", fmt.Errorf("%w", err), "install the package ansible-core")
	}
	return path, nil
}
