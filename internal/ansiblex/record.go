package ansiblex

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Record says who runs in a run's folder. It is on disk before the process is.
type Record struct {
	ID string `json:"id"`
	// Owner as users see it: "server/db".
	Owner string `json:"owner"`
	// ServerUIDs are the servers that the run may reach. Empty: a syntax check.
	ServerUIDs []string  `json:"serverUIDs,omitempty"`
	CreatedAt  time.Time `json:"createdAt"`
	// InGuest: it goes on in the guest, and is only followed from here.
	InGuest bool `json:"inGuest,omitempty"`
	// Process is nil until ansible-playbook has started.
	Process *Process `json:"process,omitempty"`
}

// Process identifies a process for ever: a pid alone is used again, after a reboot or by
// another program, and must not be killed then.
type Process struct {
	PID int `json:"pid"`
	// Start is the start time in clock ticks since boot (proc(5), field 22 of stat).
	Start uint64 `json:"start"`
	// Boot is /proc/sys/kernel/random/boot_id.
	Boot string `json:"boot"`
	// Namespaced: it is the init of a PID namespace; when it is gone, all of it is.
	Namespaced bool `json:"namespaced"`
}

// Of reports whether the run may reach the server.
func (r Record) Of(serverUID string) bool { return slices.Contains(r.ServerUIDs, serverUID) }

func writeRecord(dir string, rec Record) error {
	data, err := json.Marshal(rec)
	if err != nil {
		return err
	}
	path := filepath.Join(dir, recordFile)
	tmp := path + ".new"
	if err := os.WriteFile(tmp, data, 0o600); err != nil {
		return err
	}
	return os.Rename(tmp, path)
}

// Records lists the runs that have a folder below runsDir, oldest first.
func Records(runsDir string) ([]Record, error) {
	entries, err := os.ReadDir(runsDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var records []Record
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(runsDir, e.Name(), recordFile))
		if err != nil {
			continue // half made, half removed, or not ours
		}
		var rec Record
		if json.Unmarshal(data, &rec) == nil && rec.ID == e.Name() {
			records = append(records, rec)
		}
	}
	return records, nil
}

// identify gives what tells the process pid from any other.
func identify(pid int, namespaced bool) (*Process, error) {
	start, err := startTime(pid)
	if err != nil {
		return nil, err
	}
	boot, err := bootID()
	if err != nil {
		return nil, err
	}
	return &Process{PID: pid, Start: start, Boot: boot, Namespaced: namespaced}, nil
}

// alive reports whether p still is that process; a zombie is not.
func (p *Process) alive() bool {
	boot, err := bootID()
	if err != nil || boot != p.Boot {
		return false
	}
	start, err := startTime(p.PID)
	return err == nil && start == p.Start
}

func bootID() (string, error) {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(b)), err
}

var errZombie = errors.New("process has ended")

// startTime reads field 22 of /proc/<pid>/stat. The second field is the command in
// parentheses and may contain anything, so fields count from the last ")".
func startTime(pid int) (uint64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	end := bytes.LastIndexByte(b, ')')
	fields := bytes.Fields(b[end+1:])
	const state, start = 0, 19 // fields 3 and 22
	if end < 0 || len(fields) <= start {
		return 0, fmt.Errorf("/proc/%d/stat cannot be read", pid)
	}
	if s := fields[state][0]; s == 'Z' || s == 'X' {
		return 0, errZombie
	}
	return strconv.ParseUint(string(fields[start]), 10, 64)
}

// record notes the run's process.
func (f *Folder) record(p *Process) error {
	rec, err := f.Record()
	if err != nil {
		return err
	}
	rec.Process = p
	return writeRecord(f.Dir, rec)
}

// Record reads the run's record.
func (f *Folder) Record() (Record, error) {
	var rec Record
	data, err := os.ReadFile(f.Path(recordFile))
	if err != nil {
		return rec, err
	}
	return rec, json.Unmarshal(data, &rec)
}

// stop kills what is left of the run.
func (f *Folder) stop() error {
	rec, err := f.Record()
	if err != nil {
		rec = Record{ID: f.ID} // the mark is enough to find it
	}
	return Stop(context.Background(), rec)
}
