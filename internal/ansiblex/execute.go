package ansiblex

import (
	"context"
	"errors"
	"io"

	"github.com/apenella/go-ansible/v2/pkg/execute"
	"github.com/apenella/go-ansible/v2/pkg/execute/result"
)

// launcher starts a program of Ansible in the run's bundle, as its user.
func (f *Folder) launcher(env []string) *launcher {
	return &launcher{dir: f.Bundle(), env: env, user: f.user, started: f.record, ended: f.stop}
}

// execute runs a command and returns when nothing of it is alive and its output is logged.
// An error says that it could not be started, or that ctx ended; how it ended is in l.process.
func (l *launcher) execute(ctx context.Context, cmd execute.Commander, out, errOut *stream) error {
	err := execute.NewDefaultExecute(
		execute.WithCmd(cmd), execute.WithExecutable(l), execute.WithOutput(copier{}),
		execute.WithWrite(out), execute.WithWriteError(errOut),
	).Execute(ctx)
	if l.process != nil {
		l.process.watch.Wait()
	}
	out.flush()
	errOut.flush()
	if err != nil || l.process == nil {
		return startError(l) // go-ansible's error quotes the command line; ours says where the start failed
	}
	return nil
}

// startError gives the cause of a start that failed, without go-ansible's text around it.
func startError(l *launcher) error {
	if l.process != nil && l.process.startErr != nil {
		return l.process.startErr
	}
	return errors.New("go-ansible could not start it")
}

// copier is go-ansible's output: everything, as it comes, with no line held in memory.
type copier struct{}

// Print implements ResultsOutputer.
func (copier) Print(_ context.Context, r io.Reader, w io.Writer, _ ...result.OptionsFunc) error {
	_, err := io.Copy(w, r)
	return err
}
