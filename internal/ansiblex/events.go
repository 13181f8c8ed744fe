package ansiblex

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"sort"
	"time"

	"burrow.dev/burrow/internal/plaintext"
	"burrow.dev/burrow/manifest"
)

// Kinds of Event.
const (
	EventPlay    = "play"     // Play
	EventTask    = "task"     // Play, Task
	EventResult  = "result"   // Play, Task, Host, Status, Seconds, Message
	EventNoHosts = "no_hosts" // Play, Hosts, Groups: it matched none of the inventory's
	EventPrompt  = "prompt"   // Message: the variable that vars_prompt asks for
	EventRecap   = "recap"    // Recap; once a playbook, at its end
)

// Statuses of a result.
const (
	StatusOK          = "ok"
	StatusChanged     = "changed"
	StatusFailed      = "failed"
	StatusIgnored     = "ignored" // failed, and the playbook says that it does not matter
	StatusUnreachable = "unreachable"
	StatusSkipped     = "skipped"
)

var words = []string{
	EventPlay, EventTask, EventResult, EventNoHosts, EventPrompt, EventRecap,
	StatusOK, StatusChanged, StatusFailed, StatusIgnored, StatusUnreachable, StatusSkipped,
}

// Event is one line of events.jsonl, written by playbook/callback_plugins/burrow.py.
// Everything in it is the playbook's text: it is cleaned and bounded on reading.
type Event struct {
	Event   string                    `json:"event"`
	Time    time.Time                 `json:"time"`
	Play    string                    `json:"play,omitempty"`
	Task    string                    `json:"task,omitempty"`
	Host    string                    `json:"host,omitempty"`
	Status  string                    `json:"status,omitempty"`
	Seconds float64                   `json:"seconds,omitempty"`
	Message string                    `json:"message,omitempty"`
	Recap   map[string]manifest.Recap `json:"recap,omitempty"`
	Hosts   []string                  `json:"hosts,omitempty"`
	Groups  []string                  `json:"groups,omitempty"`
}

const (
	maxEventLine = 256 << 10
	maxName      = 200
	// maxMessage bounds what is kept of a failing task's message.
	maxMessage = 2000
	// maxRecapHosts bounds a recap that ends in history.
	maxRecapHosts = 500
	// maxInventoryNames bounds how many hosts, and groups, of an inventory an event names.
	maxInventoryNames = 100
)

// readEvents reads events from r until its end and passes each on. Lines that are no
// event are dropped; one too long is dropped to its end.
func readEvents(r io.Reader, secrets *Redactor, each func(Event)) error {
	br := bufio.NewReaderSize(r, maxEventLine)
	for {
		line, err := br.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			for errors.Is(err, bufio.ErrBufferFull) {
				_, err = br.ReadSlice('\n')
			}
			line = nil
		}
		var e Event
		if len(line) > 0 && json.Unmarshal(line, &e) == nil && e.Event != "" {
			each(e.clean(secrets))
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// clean gives e without control characters, without secrets, and then bounded: what is cut
// off a secret would not be known as one.
func (e Event) clean(secrets *Redactor) Event {
	line := func(s string) string { return plaintext.Line(secrets.Text(plaintext.Lines(s)), maxName) }
	for _, s := range []*string{&e.Play, &e.Task, &e.Host} {
		*s = line(*s)
	}
	// Words of ours: a secret that is one of them hides nothing by hiding it.
	for _, s := range []*string{&e.Event, &e.Status} {
		if !slices.Contains(words, *s) {
			*s = line(*s)
		}
	}
	e.Message = plaintext.Text(secrets.Text(plaintext.Lines(e.Message)), maxMessage)
	recap := make(map[string]manifest.Recap, len(e.Recap))
	for host, r := range e.Recap {
		if len(recap) < maxRecapHosts {
			recap[line(host)] = r
		}
	}
	e.Recap = recap
	e.Hosts, e.Groups = cleanNames(e.Hosts), cleanNames(e.Groups)
	return e
}

func cleanNames(names []string) []string {
	var clean []string
	for _, name := range names[:min(len(names), maxInventoryNames)] {
		clean = append(clean, plaintext.Line(name, maxName))
	}
	return clean
}

// Failure is a task that failed, or could not be tried, on a host.
type Failure struct {
	Host    string
	Task    string
	Message string
}

// tally adds events up. Not safe for concurrent use.
type tally struct {
	play, task, host string
	recap            map[string]manifest.Recap
	final            bool // the recap is Ansible's own, not counted along
	failed           map[string]Failure
	unreachable      map[string]Failure
	noHosts          []string // plays
	hosts, groups    []string // of the inventory that they matched none of
	prompt           string
}

func newTally() *tally {
	return &tally{recap: map[string]manifest.Recap{}, failed: map[string]Failure{}, unreachable: map[string]Failure{}}
}

func (t *tally) add(e Event) {
	switch e.Event {
	case EventPlay:
		t.play, t.task, t.host = e.Play, "", ""
	case EventTask:
		t.task, t.host = e.Task, ""
	case EventNoHosts:
		t.noHosts = append(t.noHosts, e.Play)
		t.hosts, t.groups = e.Hosts, e.Groups
	case EventPrompt:
		t.prompt = e.Message
	case EventResult:
		t.result(e)
	case EventRecap:
		t.recap, t.final = e.Recap, true
	}
}

func (t *tally) result(e Event) {
	t.host = e.Host
	r := t.recap[e.Host]
	switch e.Status {
	case StatusOK:
		r.OK++
	case StatusChanged:
		r.OK++
		r.Changed++
	case StatusFailed:
		r.Failed++
		t.failed[e.Host] = Failure{Host: e.Host, Task: e.Task, Message: e.Message}
	case StatusIgnored:
		r.OK++
		r.Ignored++
	case StatusUnreachable:
		r.Unreachable++
		t.unreachable[e.Host] = Failure{Host: e.Host, Task: e.Task, Message: e.Message}
	case StatusSkipped:
		r.Skipped++
	}
	if !t.final && (t.recap[e.Host] != manifest.Recap{} || len(t.recap) < maxRecapHosts) {
		t.recap[e.Host] = r
	}
}

// settle drops the failures that a rescue mended: Ansible's own recap counts only the rest.
func (t *tally) settle() {
	if !t.final {
		return
	}
	for host := range t.failed {
		if t.recap[host].Failed == 0 {
			delete(t.failed, host)
		}
	}
	for host := range t.unreachable {
		if t.recap[host].Unreachable == 0 {
			delete(t.unreachable, host)
		}
	}
}

func sorted(m map[string]Failure) []Failure {
	out := make([]Failure, 0, len(m))
	for _, f := range m {
		out = append(out, f)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Host < out[j].Host })
	return out
}

// writeEvent appends an event, as it was cleaned, to the run's events.jsonl, and tells how
// many bytes that took. A full disk must not end the run.
func writeEvent(w io.Writer, e Event) int {
	line, err := json.Marshal(e)
	if err != nil {
		return 0
	}
	n, _ := w.Write(append(line, '\n'))
	return n
}
