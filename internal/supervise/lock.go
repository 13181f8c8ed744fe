package supervise

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"burrow.dev/burrow/internal/errs"
)

// lockFile stands in the data directory. It is held by flock, which the kernel gives
// back however its holder ends; its text only tells who that is. It is never removed:
// a second one of the same name could be locked beside it.
const lockFile = "up.lock"

// Holder is who supervises a data directory.
type Holder struct {
	Identity
	Since time.Time `json:"since"`
	// Name of the command, if it is another than `burrow up`.
	Name string `json:"name,omitempty"`
}

// Supervises says that it is `burrow up`, and not a command that must not be disturbed.
func (h Holder) Supervises() bool { return h.Name == "" }

// busy refuses a data directory for its holder's sake.
func (h Holder) busy(dir, action string) error {
	name, next := h.Name, "wait until it has ended, or end it with Ctrl-C where it was started"
	if h.Supervises() {
		name, next = "burrow up", "look at it with burrow status, end it with burrow down, or choose another folder with --data-dir"
	}
	return errs.New(errs.Permanent, "data directory "+dir, action,
		errs.Reason("%w: %s runs as pid %d since %s", errs.ErrBusy, name, h.PID, h.Since.Local().Format(time.DateTime)), next)
}

// lock is a held lock file.
type lock struct{ file *os.File }

// acquire takes the data directory for this process, which has a name if it is another
// command than `burrow up`, or says who has it.
func acquire(dir, name string) (*lock, error) {
	path := filepath.Join(dir, lockFile)
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, errs.NewOperator("data directory "+dir, "lock", err, "run as root")
	}
	if err := flockPastTheDead(file); err != nil {
		defer file.Close()
		if !errors.Is(err, errs.ErrBusy) {
			return nil, err
		}
		holder, readErr := readHolder(file)
		if readErr != nil { // it is being written at this moment
			return nil, errs.New(errs.Permanent, "data directory "+dir, "lock", errs.Reason("%w: another burrow has just started", errs.ErrBusy), "look again: burrow status")
		}
		return nil, holder.busy(dir, "lock")
	}
	self, err := IdentityOf(os.Getpid())
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	text, err := json.Marshal(Holder{Identity: self, Since: time.Now(), Name: name})
	if err == nil {
		err = file.Truncate(0)
	}
	if err == nil {
		_, err = file.WriteAt(append(text, '\n'), 0)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("data directory %s: write lock: %w", dir, err), file.Close())
	}
	return &lock{file: file}, nil
}

// release gives the data directory back.
func (l *lock) release() error {
	return errors.Join(l.file.Truncate(0), l.file.Close())
}

// HolderOf tells who supervises a data directory; held is false when nobody does.
func HolderOf(dir string) (holder Holder, held bool, err error) {
	file, err := os.Open(filepath.Join(dir, lockFile))
	if errors.Is(err, fs.ErrNotExist) {
		return Holder{}, false, nil
	}
	if err != nil {
		return Holder{}, false, fmt.Errorf("data directory %s: open lock: %w", dir, err)
	}
	defer file.Close()
	err = flock(file, unix.LOCK_SH)
	if err == nil {
		return Holder{}, false, nil
	}
	if !errors.Is(err, errs.ErrBusy) {
		return Holder{}, false, err
	}
	holder, err = readHolder(file)
	return holder, true, err
}

// dyingTime is how long a killed holder's last thread may keep the lock.
const dyingTime = 5 * time.Second

// flockPastTheDead locks, and waits only for a holder that is dead: its last thread lets
// the lock go a moment after its first has ended.
func flockPastTheDead(file *os.File) error {
	deadline := time.After(dyingTime)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		err := flock(file, unix.LOCK_EX)
		if !errors.Is(err, errs.ErrBusy) {
			return err
		}
		if holder, readErr := readHolder(file); readErr != nil || holder.Alive() {
			return err
		}
		select {
		case <-deadline:
			return err
		case <-tick.C:
		}
	}
}

// flock locks without waiting; errs.ErrBusy when another process holds it.
func flock(file *os.File, how int) error {
	err := unix.Flock(int(file.Fd()), how|unix.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return fmt.Errorf("lock %s: %w", file.Name(), errs.ErrBusy)
	}
	if err != nil {
		return fmt.Errorf("lock %s: %w", file.Name(), err)
	}
	return nil
}

func readHolder(file *os.File) (Holder, error) {
	var holder Holder
	text, err := io.ReadAll(io.NewSectionReader(file, 0, 4<<10))
	if err != nil {
		return holder, fmt.Errorf("lock %s: read: %w", file.Name(), err)
	}
	if err := json.Unmarshal(text, &holder); err != nil {
		return holder, fmt.Errorf("lock %s: read: %w", file.Name(), err)
	}
	return holder, nil
}
