package supervise

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// State is what is known of a part; kept on disk from before its program begins.
type State struct {
	Name string `json:"name"`
	Identity
	// Since is when this process was started.
	Since time.Time `json:"since"`
	// Ready is true from the moment the part answered until its process ended.
	Ready bool `json:"ready"`
	// Version of the part that this process is of; see Part.Version.
	Version string `json:"version"`
	// Path of the program.
	Path string `json:"path"`
	// Restarts since the supervisor began.
	Restarts int `json:"restarts"`
	// LastExit says how the process before this one ended.
	LastExit string `json:"lastExit,omitempty"`
	// Log is the file of its output.
	Log string `json:"log"`
}

// runFolder holds what concerns running processes and means nothing once they are gone.
func runFolder(dir string) string { return filepath.Join(dir, "run") }

func stateFile(dir string) string { return filepath.Join(runFolder(dir), "parts.json") }

// States reads what is recorded of a data directory's parts, in the order of their
// start. It is empty when nothing was started.
func States(dir string) ([]State, error) {
	text, err := os.ReadFile(stateFile(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("running parts of %s: read: %w", dir, err)
	}
	var states []State
	if err := json.Unmarshal(text, &states); err != nil {
		return nil, fmt.Errorf("running parts of %s: read %s: %w", dir, stateFile(dir), err)
	}
	return states, nil
}

// ledger is the file of all parts' states.
type ledger struct {
	dir    string
	mu     sync.Mutex
	states []State
}

// update changes one part's state and writes the file before it returns.
func (l *ledger) update(name string, change func(*State)) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := slices.IndexFunc(l.states, func(state State) bool { return state.Name == name })
	if at < 0 {
		l.states = append(l.states, State{Name: name})
		at = len(l.states) - 1
	}
	change(&l.states[at])
	return l.write()
}

// remove forgets a part whose process is gone.
func (l *ledger) remove(name string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.states = slices.DeleteFunc(l.states, func(state State) bool { return state.Name == name })
	return l.write()
}

// write replaces the file; the caller holds mu.
func (l *ledger) write() error {
	text, err := json.MarshalIndent(l.states, "", "  ")
	if err != nil {
		return fmt.Errorf("running parts of %s: encode: %w", l.dir, err)
	}
	aside := stateFile(l.dir) + ".new"
	if err := os.WriteFile(aside, append(text, '\n'), 0o644); err != nil {
		return fmt.Errorf("running parts of %s: write: %w", l.dir, err)
	}
	if err := os.Rename(aside, stateFile(l.dir)); err != nil {
		return fmt.Errorf("running parts of %s: put in place: %w", l.dir, err)
	}
	return nil
}

// clear removes the file: nothing runs.
func (l *ledger) clear() error {
	if err := os.Remove(stateFile(l.dir)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("running parts of %s: remove: %w", l.dir, err)
	}
	return nil
}
