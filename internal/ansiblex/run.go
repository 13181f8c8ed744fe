package ansiblex

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/apenella/go-ansible/v2/pkg/execute"
	"github.com/apenella/go-ansible/v2/pkg/execute/result"

	"burrow.dev/burrow/internal/plaintext"
	"burrow.dev/burrow/manifest"
)

// Exit statuses of ansible-playbook (ansible-core ≥ 2.14). 2, 4 and 8 may be added up; 4
// also means that a file could not be parsed, so events decide between the two.
const (
	exitOK          = 0
	exitFailed      = 2
	exitUnreachable = 4
	exitFailedBreak = 8
)

// Result is how a run ended.
type Result int

// Results. Whatever happened is one of them; there is no success by default.
const (
	Invalid     Result = iota // Ansible refused the playbook, or something is wrong with Ansible itself
	OK                        // every host did every task
	NoHosts                   // nothing ran: no play matched a server of the run
	Failed                    // a task failed on a host
	Unreachable               // a host could not be reached, and no task failed
	Prompted                  // the playbook asks for a value
	Killed                    // the process was killed, not by us
)

// Outcome is the result and what is to be said about it.
type Outcome struct {
	Result Result
	Recap  map[string]manifest.Recap
	// Failures of tasks (Failed) or connections (Unreachable), by host.
	Failures []Failure
	// Message is Ansible's own (Invalid), the plays (NoHosts), the variable (Prompted),
	// cleaned and bounded.
	Message string
}

// Sinks take what a run produces while it runs.
type Sinks struct {
	Log *Log
	// Event is called for each event in order, by one goroutine. May be nil.
	Event func(Event)
	// Recap as counted so far accompanies it.
	Recap func(map[string]manifest.Recap)
}

// Run runs the play once, limited to hosts (nil: all of the play's), and waits until
// nothing of it is alive. When ctx ends the run is killed and the error is ctx's; any
// other error means that the run could not be started or watched. A run that ended by
// itself is an Outcome, whatever it did.
func (p *Prepared) Run(ctx context.Context, hosts []string, sinks Sinks) (Outcome, error) {
	if hosts == nil {
		hosts = p.limit()
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w := &watch{log: sinks.Log, sinks: sinks, tally: newTally(), stop: cancel}
	if err := w.openEvents(p.folder); err != nil {
		return Outcome{}, err
	}
	l := &launcher{
		dir: p.folder.Bundle(), env: p.folder.environment(p.cfgPath, p.cfg), user: p.folder.user, events: w.eventsW,
		started: p.folder.record, ended: p.folder.stop,
	}
	out, errOut := w.stream(), w.stream()
	err := execute.NewDefaultExecute(
		execute.WithCmd(attempt{p, hosts}), execute.WithExecutable(l), execute.WithOutput(copier{}),
		execute.WithWrite(out), execute.WithWriteError(errOut),
	).Execute(ctx)
	// go-ansible's error quotes the command line; ours says where the start failed.
	if l.process != nil {
		l.process.watch.Wait()
	}
	w.closeEvents()
	out.flush()
	errOut.flush()
	if w.tally.prompt != "" {
		return Outcome{Result: Prompted, Message: w.tally.prompt, Recap: w.tally.recap}, nil
	}
	if ctx.Err() != nil {
		return Outcome{}, context.Cause(ctx)
	}
	if err != nil || l.process == nil {
		return Outcome{}, fmt.Errorf("start ansible-playbook: %w", startError(l))
	}
	return w.outcome(l.process, p, out, errOut)
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

// watch collects what one run writes.
type watch struct {
	log     *Log
	sinks   Sinks
	tally   *tally
	stop    context.CancelFunc
	eventsW *os.File
	file    *os.File
	written int
	reader  sync.WaitGroup
}

func (w *watch) stream() *stream { return &stream{log: w.log, last: &lastLines{}} }

// openEvents makes the pipe that the plugin writes to, and reads it.
func (w *watch) openEvents(f *Folder) error {
	file, err := os.OpenFile(f.Path(eventsFile), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	r, wr, err := os.Pipe()
	if err != nil {
		return errors.Join(err, file.Close())
	}
	w.file, w.eventsW = file, wr
	w.reader.Go(func() {
		defer r.Close()
		if err := readEvents(r, w.event); err != nil {
			w.log.Printf("the events of this run cannot be read: %v", err)
		}
		// Whoever still writes must not be blocked.
		_, _ = io.Copy(io.Discard, r)
	})
	return nil
}

func (w *watch) closeEvents() {
	_ = w.eventsW.Close()
	w.reader.Wait()
	_ = w.file.Close()
}

func (w *watch) event(e Event) {
	w.tally.add(e)
	if w.written < maxLog {
		w.written += writeEvent(w.file, e)
	}
	if e.Event == EventPrompt {
		w.stop() // nobody will answer
	}
	if w.sinks.Event != nil {
		w.sinks.Event(e)
	}
	if w.sinks.Recap != nil {
		w.sinks.Recap(maps.Clone(w.tally.recap))
	}
}

// outcome decides what a run that ended by itself was.
func (w *watch) outcome(proc *process, p *Prepared, out, errOut *stream) (Outcome, error) {
	code, signalled, err := proc.result()
	if err != nil {
		return Outcome{}, fmt.Errorf("wait for ansible-playbook: %w", err)
	}
	w.tally.settle()
	o := Outcome{Recap: w.tally.recap}
	hostCodes := exitFailed | exitUnreachable | exitFailedBreak
	switch {
	case signalled:
		o.Result = Killed
	case code == exitOK && len(w.tally.recap) == 0 && !p.play.SyntaxCheck:
		o.Result, o.Message = NoHosts, strings.Join(slices.Compact(w.tally.noHosts), ", ")
	case code == exitOK:
		o.Result = OK
	case code&^hostCodes == 0 && len(w.tally.failed) > 0:
		o.Result, o.Failures = Failed, sorted(w.tally.failed)
	case code&^hostCodes == 0 && len(w.tally.unreachable) > 0:
		o.Result, o.Failures = Unreachable, sorted(w.tally.unreachable)
	default:
		o.Result, o.Message = Invalid, complaint(p.folder, code, errOut.last.text, out.last.text)
	}
	return o, nil
}

// markers begin what Ansible says when it gives up: on a playbook, on its arguments.
var markers = []string{"ERROR! ", "ansible-playbook: error: "}

// complaint is what Ansible says is wrong: from its first marker on, or its last words.
func complaint(f *Folder, code int, texts ...[]byte) string {
	for _, t := range texts {
		for _, m := range markers {
			if _, after, found := strings.Cut(string(t), m); found {
				return plaintext.Text(f.hidePaths(after), maxMessage)
			}
		}
	}
	for _, t := range texts {
		if s := strings.TrimSpace(f.hidePaths(string(t))); s != "" {
			return plaintext.Text(s[max(0, len(s)-maxMessage/2):], maxMessage)
		}
	}
	return fmt.Sprintf("ansible-playbook ended with %d and no message", code)
}

// hidePaths gives paths as the user knows them: those of the run are gone when they are read.
func (f *Folder) hidePaths(s string) string {
	return strings.NewReplacer(f.Bundle()+"/", "", f.Bundle(), ".", f.Path("work", "home"), "~", f.Dir, "(run)").Replace(s)
}
