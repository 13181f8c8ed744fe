package supervise

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// ErrGone means that a process no longer exists.
var ErrGone = errors.New("process is gone")

// Identity names one process for good: pids are used again, also after a reboot.
type Identity struct {
	PID int `json:"pid"`
	// StartTicks is the start time since boot, in clock ticks (field 22 of /proc/PID/stat).
	StartTicks uint64 `json:"startTicks"`
	// Boot is the kernel's boot id.
	Boot string `json:"boot"`
}

// IdentityOf reads the identity of a process, ErrGone when there is none.
func IdentityOf(pid int) (Identity, error) {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return Identity{}, fmt.Errorf("process %d: read boot id: %w", pid, err)
	}
	stat, err := readStat(pid)
	if err != nil {
		return Identity{}, err
	}
	return Identity{PID: pid, StartTicks: stat.startTicks, Boot: strings.TrimSpace(string(boot))}, nil
}

// Alive says that this very process runs; a zombie does not.
func (i Identity) Alive() bool {
	now, err := IdentityOf(i.PID)
	if err != nil || now != i {
		return false
	}
	stat, err := readStat(i.PID)
	return err == nil && stat.state != "Z" && stat.state != "X"
}

// open gives a pidfd of this very process, ErrGone when it does not run any more.
// A signal through it cannot reach another process.
func (i Identity) open() (int, error) {
	if i.PID <= 0 {
		return -1, ErrGone
	}
	fd, err := unix.PidfdOpen(i.PID, 0)
	if errors.Is(err, syscall.ESRCH) {
		return -1, ErrGone
	}
	if err != nil {
		return -1, fmt.Errorf("process %d: open: %w", i.PID, err)
	}
	if !i.Alive() { // checked after opening: what is alive now is what the fd holds
		unix.Close(fd)
		return -1, ErrGone
	}
	return fd, nil
}

// stat is what is used of /proc/PID/stat.
type stat struct {
	state      string
	startTicks uint64
}

// startField is the place of "starttime" counted from the state, which follows the
// command name's last bracket.
const startField = 19

func readStat(pid int) (stat, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
		return stat{}, fmt.Errorf("process %d: %w", pid, ErrGone)
	}
	if err != nil {
		return stat{}, fmt.Errorf("process %d: read stat: %w", pid, err)
	}
	parsed, err := parseStat(string(text))
	if err != nil {
		return stat{}, fmt.Errorf("process %d: %w", pid, err)
	}
	return parsed, nil
}

// parseStat skips the command name, which may hold blanks and brackets.
func parseStat(text string) (stat, error) {
	end := strings.LastIndexByte(text, ')')
	if end < 0 {
		return stat{}, errors.New("read stat: no command name")
	}
	fields := strings.Fields(text[end+1:])
	if len(fields) <= startField {
		return stat{}, fmt.Errorf("read stat: %d fields after the name, want more than %d", len(fields), startField)
	}
	ticks, err := strconv.ParseUint(fields[startField], 10, 64)
	if err != nil {
		return stat{}, fmt.Errorf("read stat: start time: %w", err)
	}
	return stat{state: fields[0], startTicks: ticks}, nil
}
