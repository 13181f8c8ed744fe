package faults

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// deed is what a worker does to itself, or to an activity, when an order says so.
type deed string

const (
	killBefore deed = "kill before" // kill -9 of the worker before the side effect
	killMiddle deed = "kill middle" // at a moment of the call
	killAfter  deed = "kill after"  // after the side effect, before its report
	failBefore deed = "fail before" // an error instead of the side effect
	failAfter  deed = "fail after"  // an error although the side effect happened
	hang       deed = "hang"        // acts, then says nothing until its time is over
	freeze     deed = "freeze"      // SIGSTOP after the side effect: no heartbeats
	waitBefore deed = "wait before" // until the harness says go, or the activity is cancelled
	waitAfter  deed = "wait after"
	notice     deed = "notice" // goes on, and tells the harness that it began
)

// order is one deed for an activity of an operation. Times is how often; the rest goes well.
type order struct {
	Deed  deed          `json:"deed"`
	Class string        `json:"class,omitempty"` // of failBefore and failAfter
	Times int           `json:"times"`
	After time.Duration `json:"after,omitempty"` // killMiddle: when
	// Once names an activity whose order is to be obeyed first: this one is for the undo.
	Once string `json:"once,omitempty"`
}

// orders is the folder through which the harness and the workers talk. It outlives every kill.
type orders string

func (o orders) path(workflow, activity, ending string) string {
	return filepath.Join(string(o), url.PathEscape(workflow)+"__"+activity+ending)
}

// give orders a deed.
func (o orders) give(workflow, activity string, what order) error {
	text, err := json.Marshal(what)
	if err != nil {
		return err
	}
	aside := o.path(workflow, activity, ".new")
	if err := os.WriteFile(aside, text, 0o600); err != nil {
		return err
	}
	return os.Rename(aside, o.path(workflow, activity, ".order"))
}

// take gives the order for an activity as long as it has not been done often enough, and
// counts it as done.
func (o orders) take(workflow, activity string) (what order, n int, ok bool, err error) {
	text, err := os.ReadFile(o.path(workflow, activity, ".order"))
	if errors.Is(err, fs.ErrNotExist) {
		return what, 0, false, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &what)
	}
	if err != nil {
		return what, 0, false, err
	}
	if what.Once != "" && o.done(workflow, what.Once) == 0 {
		return order{}, 0, false, nil
	}
	n = o.done(workflow, activity)
	return what, n, n < what.Times, nil
}

// note counts a deed; it is on the disk's side of a kill.
func (o orders) note(workflow, activity string) error {
	return appendTo(o.path(workflow, activity, ".done"), ".")
}

// done is how often an order was obeyed.
func (o orders) done(workflow, activity string) int {
	info, err := os.Stat(o.path(workflow, activity, ".done"))
	if err != nil {
		return 0
	}
	return int(info.Size())
}

// release lets a waiting activity go on.
func (o orders) release(workflow, activity string) error {
	return os.WriteFile(o.path(workflow, activity, ".go"), nil, 0o600)
}

func (o orders) released(workflow, activity string) bool {
	_, err := os.Stat(o.path(workflow, activity, ".go"))
	return err == nil
}

// started notes that an activity for which there is an order began an attempt.
func (o orders) started(workflow, activity string) error {
	return appendTo(o.path(workflow, activity, ".started"), fmt.Sprintln(time.Now().UnixNano()))
}

// starts gives when each attempt of an activity for which there is an order began.
func (o orders) starts(workflow, activity string) []time.Time {
	text, _ := os.ReadFile(o.path(workflow, activity, ".started")) // none is none
	var all []time.Time
	for _, field := range strings.Fields(string(text)) {
		if n, err := strconv.ParseInt(field, 10, 64); err == nil {
			all = append(all, time.Unix(0, n))
		}
	}
	return all
}

// keepTimes leaves every time limit as the product has it.
func (o orders) keepTimes() error {
	return os.WriteFile(filepath.Join(string(o), "keep-times"), nil, 0o600)
}

func (o orders) timesKept() bool {
	_, err := os.Stat(filepath.Join(string(o), "keep-times"))
	return err == nil
}

func appendTo(path, text string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteString(text)
	return err
}

// forget takes back every order for an operation.
func (o orders) forget(workflow string) error {
	found, err := filepath.Glob(filepath.Join(string(o), url.PathEscape(workflow)+"__*"))
	for _, path := range found {
		err = errors.Join(err, os.Remove(path))
	}
	return err
}
