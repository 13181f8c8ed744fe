package volume

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"burrow.dev/burrow/internal/errs"
)

const (
	marksMode   = 0o700
	markMode    = 0o600
	markAction  = "mark as burrow's"
	marksObject = "marks of disks"
)

// marks are the names of the volumes that burrow has made on this host, or was about to:
// an empty file for each. A directory pool of libvirt has no room for a mark, and a name
// proves nothing: anybody may put a file of that name there.
type marks struct{ dir string }

// has reports whether a volume is marked.
func (m marks) has(volume string) (bool, error) {
	_, err := os.Lstat(filepath.Join(m.dir, volume))
	if err == nil {
		return true, nil
	}
	// Without the folder everything of burrow's would count as somebody else's.
	if _, folder := os.Lstat(m.dir); errors.Is(err, fs.ErrNotExist) && folder == nil {
		return false, nil
	}
	return false, errs.NewOperator(marksObject, "read", err, "burrow down, then burrow up: it makes "+m.dir+" again, and takes disks for its own by their names")
}

// add marks a volume. When it returns, the mark outlives a power cut: a volume that is made
// after it is never without.
func (m marks) add(volume string) error {
	err := touch(filepath.Join(m.dir, volume))
	return markError(volume, errors.Join(err, syncDir(m.dir)))
}

// drop forgets a volume; none is success. One that comes back after a power cut names a
// volume that is not there.
func (m marks) drop(volume string) error {
	err := os.Remove(filepath.Join(m.dir, volume))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return markError(volume, err)
}

// MarkStanding marks, once in the life of this host, the volumes that have names of
// burrow's: they were made before there were marks, or came here with their pool. It must
// have run before anything else here does.
func (a *Activities) MarkStanding(ctx context.Context) error {
	dir := a.marks.dir
	if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
		return markError("", err)
	}
	names, err := a.named(ctx)
	if err != nil {
		return err
	}
	// All of them or none: a folder that is there is whole.
	part := dir + ".part"
	err = errors.Join(os.RemoveAll(part), os.MkdirAll(part, marksMode))
	for _, n := range names {
		err = errors.Join(err, touch(filepath.Join(part, n.Volume)))
	}
	if err = errors.Join(err, syncDir(part)); err == nil {
		err = errors.Join(os.Rename(part, dir), syncDir(filepath.Dir(dir)))
	}
	return markError("", err)
}

func touch(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, markMode)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// markError classes what the file system says.
func markError(volume string, err error) error {
	object := marksObject
	if volume != "" {
		object = "volume " + volume
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return errs.NewOperator(object, markAction, errors.Join(errs.ErrNoSpace, err), "free space in the data folder")
	case errors.Is(err, fs.ErrPermission):
		return errs.NewOperator(object, markAction, err, "the worker must run as root")
	}
	return errs.NewTransient(object, markAction, err)
}
