package render

import (
	"io"
	"os"
	"strings"
	"time"
)

// State is where a step or an operation stands.
type State string

// States. Done, Failed, Skipped and Undone are final; Held waits for a person.
const (
	Pending  State = "pending"
	Running  State = "running"
	Retrying State = "retrying"
	Done     State = "done"
	Failed   State = "failed"
	Skipped  State = "skipped"
	Held     State = "held"
	Undoing  State = "undoing"
	Undone   State = "undone"
	// Cancelled is the end of what somebody cancelled, in a look back.
	Cancelled State = "cancelled"
)

// active reports whether something is happening in s right now.
func (s State) active() bool {
	return s == Running || s == Retrying || s == Undoing
}

// Step is one line of an operation.
type Step struct {
	Name  string `json:"name"`
	State State  `json:"state"`
	// Attempt counts from 1; it is shown from 2 on.
	Attempt int `json:"attempt,omitempty"`
	// Started and Ended are zero while they have not come.
	Started time.Time `json:"started,omitzero"`
	Ended   time.Time `json:"ended,omitzero"`
	// LastError is shown while the step is Retrying, Failed or Held.
	LastError string `json:"lastError,omitempty"`
	// NextTry is when a Retrying step starts again.
	NextTry time.Time `json:"nextTry,omitzero"`
	// Detail is what the step is busy with: "eth1 → br-db-net", "download 40 %".
	Detail string `json:"detail,omitempty"`
}

// Operation is one workflow as the user sees it. Update gets it whole each time.
type Operation struct {
	// ID is the workflow ID, "server/db"; it identifies the operation between updates.
	ID string `json:"id"`
	// Title is the heading: "server/db ProvisionServer".
	Title string `json:"title"`
	State State  `json:"state"`
	// Message is a closing or warning sentence; it may change while the operation runs.
	Message string    `json:"message,omitempty"`
	Started time.Time `json:"started,omitzero"`
	Ended   time.Time `json:"ended,omitzero"`
	Steps   []Step    `json:"steps"`
}

// without takes the operation's own name off the front of a text that stands behind it.
func without(id, text string) string { return strings.TrimPrefix(text, id+": ") }

// Renderer shows operations. Its methods may be called from one goroutine at a time.
type Renderer interface {
	// Update takes the whole view; what did not change costs nothing to show.
	Update(ops []Operation)
	// Close leaves the last view on the screen and gives the first write error.
	// Closing twice is closing once.
	Close() error
}

// New gives the live view for a terminal, or one line per change for anything else.
// w must be the terminal's *os.File for the live view to know its size; other
// writers count as 80×24. NO_COLOR is respected; TERM=dumb gets lines.
func New(w io.Writer, tty bool) Renderer {
	if tty && os.Getenv("TERM") != "dumb" {
		return newLive(w, time.Now, redrawEvery)
	}
	return newPlain(w, time.Now)
}
