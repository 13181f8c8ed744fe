package inguest

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Stages of a run, in order.
const (
	StageWaiting = "waiting" // for cloud-init
	StageInstall = "install" // of Ansible
	StageFetch   = "fetch"   // of the playbook
	StagePlay    = "play"
)

// MaxAnswer bounds what a guest may say to one question, in bytes.
const MaxAnswer = 256 << 10

// State is how a run stands.
type State struct {
	Stage string `json:"stage"`
	Exit  int    `json:"exit"`  // of the stage, when it ended there
	Ended bool   `json:"ended"` // nothing of it goes on
	Try   int    `json:"try"`   // from 1; each has its events
	Boot  string `json:"boot"`  // in which it runs
}

// Answer is what a guest says of a run, to one question.
type Answer struct {
	State
	// Interrupted: the guest was started again while the run was under way.
	Interrupted bool
	// Log and Events are what came since the last question.
	Log, Events []byte
}

// Offsets say how much is known of a run.
type Offsets struct{ Log, Try, Events int }

// Read is the question for what is beyond o.
func (p Play) Read(o Offsets) []string {
	return p.Command("read", strconv.Itoa(o.Log), strconv.Itoa(max(o.Try, 1)), strconv.Itoa(o.Events))
}

// maxTry bounds how often a run is tried: the manifest's own bound, and the first time.
const maxTry = 101

var errAnswer = errors.New("its answer cannot be read")

// ParseAnswer reads what the runner's read prints.
func ParseAnswer(text []byte) (Answer, error) {
	lines := strings.Split(string(text), "\n")
	const boot, state, log, events, end, count = 0, 1, 2, 3, 4, 5
	if len(text) > MaxAnswer || len(lines) != count || lines[end] != "" {
		return Answer{}, fmt.Errorf("%w: it has not the form that burrow's runner gives it", errAnswer)
	}
	if lines[state] == "" { // it is just being begun
		return Answer{State: State{Stage: StageWaiting, Try: 1, Boot: lines[boot]}}, nil
	}
	var a Answer
	if err := json.Unmarshal([]byte(lines[state]), &a.State); err != nil {
		return Answer{}, fmt.Errorf("%w: its state is no JSON", errAnswer)
	}
	switch a.Stage {
	case StageWaiting, StageInstall, StageFetch, StagePlay:
	default:
		return Answer{}, fmt.Errorf("%w: it is in no stage that there is", errAnswer)
	}
	if a.Try < 1 || a.Try > maxTry || a.Exit < 0 || a.Exit > 255 {
		return Answer{}, fmt.Errorf("%w: its numbers are out of range", errAnswer)
	}
	a.Interrupted = !a.Ended && a.Boot != lines[boot]
	var err error
	if a.Log, err = base64.StdEncoding.DecodeString(lines[log]); err != nil {
		return Answer{}, fmt.Errorf("%w: its log is no base64", errAnswer)
	}
	if a.Events, err = base64.StdEncoding.DecodeString(lines[events]); err != nil {
		return Answer{}, fmt.Errorf("%w: its events are no base64", errAnswer)
	}
	return a, nil
}
