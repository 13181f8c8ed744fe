package backup

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"burrow.dev/burrow/internal/errs"
)

// WriteFile has write fill a new file, mode 0600: it is at path when it is whole and on
// disk, else there is nothing. A file that is there is replaced with force only.
func WriteFile(ctx context.Context, path string, force bool, write func(io.Writer) error) (err error) {
	object := "backup " + path
	if err := checkTarget(path, force); err != nil {
		return err
	}
	dir := filepath.Dir(path)
	aside, err := os.CreateTemp(dir, ".burrow-backup-*.part") // mode 0600
	if err != nil {
		return errs.NewOperator(object, "create", err, "name a folder that is there and that you may write to")
	}
	defer func() {
		_ = aside.Close() // twice is harmless
		if err != nil {
			_ = os.Remove(aside.Name())
		}
	}()
	err = write(aside)
	if err == nil {
		err = aside.Sync()
	}
	if err == nil {
		err = aside.Close()
	}
	if err == nil {
		err = ctx.Err()
	}
	if err == nil {
		err = putInPlace(aside.Name(), path, force)
	}
	if err == nil {
		err = syncDir(dir)
	}
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return errs.NewOperator(object, "write", errs.Reason("%w: %w", errs.ErrNoSpace, err), "make room, or name another disk; nothing was left behind")
	}
	return err
}

// checkTarget says before the work what would be refused after it.
func checkTarget(path string, force bool) error {
	object := "backup " + path
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return errs.NewOperator(object, "create", err, "")
	case !info.Mode().IsRegular():
		return errs.NewPermanent(object, "create", errs.Reason("%w: it is there and is no plain file", errs.ErrExists), "name another file, or - for standard output")
	case !force:
		return taken(object)
	}
	return nil
}

func taken(object string) error {
	return errs.NewPermanent(object, "create", errs.Reason("%w", errs.ErrExists), "name another file, or replace this one with --force")
}

// putInPlace gives the file its name; without force never in another's place.
func putInPlace(from, to string, force bool) error {
	if force {
		return os.Rename(from, to)
	}
	err := unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) { // a file system that cannot: NFS
		if err = os.Link(from, to); err == nil {
			err = os.Remove(from)
		}
	}
	if errors.Is(err, fs.ErrExist) {
		return taken("backup " + to)
	}
	return err
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
