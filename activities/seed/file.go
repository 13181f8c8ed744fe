package seed

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/internal/cloudinit"
	"burrow.dev/burrow/internal/errs"
)

// instanceID names this life of the guest: cloud-init runs its once-only parts again
// when it changes, which is on a rebuild and never on an edit (pitfall 38).
func instanceID(in WriteIn) string { return in.Server.UID + "-" + strconv.Itoa(in.Rebuild) }

// writeOnce writes a seed's medium unless it is there: the name says its content, and a
// file gets its name only when it is whole and on the disk. What a write that was killed
// left of it is removed.
func writeOnce(path string, seed cloudinit.Seed) error {
	dir := filepath.Dir(path)
	// Chmod as well: a strict umask would shut QEMU's user out.
	if err := errors.Join(os.MkdirAll(dir, dirMode), os.Chmod(dir, dirMode)); err != nil {
		return err
	}
	unlock, err := lockDir(dir)
	if err != nil {
		return err
	}
	defer unlock()
	parts, err := filepath.Glob(filepath.Join(dir, "."+filepath.Base(path)+partMark+"*"))
	for _, part := range parts {
		err = errors.Join(err, os.Remove(part))
	}
	if err != nil {
		return err
	}
	if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() && info.Size() > 0 {
		return nil
	}
	part, err := os.CreateTemp(dir, "."+filepath.Base(path)+partMark)
	if err != nil {
		return err
	}
	defer os.Remove(part.Name()) // gone already when all went well
	err = errors.Join(part.Chmod(fileMode), seed.WriteISO(part), part.Sync())
	if err := errors.Join(err, part.Close()); err != nil {
		return err
	}
	if err := os.Rename(part.Name(), path); err != nil {
		return err
	}
	return syncDir(dir)
}

// partMark stands in the name of a file that is not whole yet.
const partMark = ".part-"

// lockDir lets one seed be written at a time, which takes milliseconds. The kernel gives
// the lock back however its holder ends.
func lockDir(dir string) (unlock func(), err error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	for {
		err = syscall.Flock(int(d.Fd()), syscall.LOCK_EX)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if err != nil {
		return nil, errors.Join(&os.PathError{Op: "lock", Path: dir, Err: err}, d.Close())
	}
	return func() { d.Close() }, nil
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// fileError classes what the file system says.
func fileError(s activities.Server, action string, err error) error {
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return errs.NewOperator(s.Ref(), action, errors.Join(errs.ErrNoSpace, err), "free space in the data folder, then: burrow retry "+s.Ref())
	case errors.Is(err, fs.ErrPermission):
		return errs.NewOperator(s.Ref(), action, err, "the worker must run as root")
	}
	return errs.NewTransient(s.Ref(), action, err)
}
