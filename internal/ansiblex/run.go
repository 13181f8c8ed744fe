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
	// Hosts and Groups are the inventory's (NoHosts), the first of them.
	Hosts, Groups []string
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
	l := p.folder.launcher(p.folder.environment(p.cfgPath, p.cfg, p.galaxy))
	l.events = w.eventsW
	out, errOut := newStream(sinks.Log), newStream(sinks.Log)
	err := l.execute(ctx, attempt{p, hosts}, out, errOut)
	w.closeEvents()
	if w.tally.prompt != "" {
		return Outcome{Result: Prompted, Message: w.tally.prompt, Recap: w.tally.recap}, nil
	}
	if ctx.Err() != nil {
		return Outcome{}, context.Cause(ctx)
	}
	if err != nil {
		return Outcome{}, fmt.Errorf("start ansible-playbook: %w", err)
	}
	return w.outcome(l.process, p, out, errOut)
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
		if err := readEvents(r, w.log.secrets, w.event); err != nil {
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
	return w.judge(p.folder, code, signalled, p.play.SyntaxCheck, errOut.last.text, out.last.text), nil
}

// judge decides by what the events and ansible-playbook's exit status say.
func (w *watch) judge(f *Folder, code int, signalled, syntaxCheck bool, texts ...[]byte) Outcome {
	w.tally.settle()
	o := Outcome{Recap: w.tally.recap}
	hostCodes := exitFailed | exitUnreachable | exitFailedBreak
	switch {
	case signalled:
		o.Result = Killed
	case code == exitOK && len(w.tally.recap) == 0 && !syntaxCheck:
		o.Result, o.Message = NoHosts, strings.Join(slices.Compact(w.tally.noHosts), ", ")
		o.Hosts, o.Groups = w.tally.hosts, w.tally.groups
	case code == exitOK:
		o.Result = OK
	case code&^hostCodes == 0 && len(w.tally.failed) > 0:
		o.Result, o.Failures = Failed, sorted(w.tally.failed)
	case code&^hostCodes == 0 && len(w.tally.unreachable) > 0:
		o.Result, o.Failures = Unreachable, sorted(w.tally.unreachable)
	default:
		o.Result, o.Message = Invalid, complaint(f, code, texts...)
	}
	return o
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
	return fmt.Sprintf("Ansible ended with %d and no message", code)
}

// hidePaths gives paths as the user knows them: those of the run are gone when they are read.
func (f *Folder) hidePaths(s string) string {
	return strings.NewReplacer(f.Bundle()+"/", "", f.Bundle(), ".", f.Path("work", "home"), "~", f.Dir, "(run)").Replace(s)
}
