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
// file gets its name only when it is whole and on the disk.
func writeOnce(path string, seed cloudinit.Seed) error {
	if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() && info.Size() > 0 {
		return nil
	}
	dir := filepath.Dir(path)
	// Chmod as well: a strict umask would shut QEMU's user out.
	if err := errors.Join(os.MkdirAll(dir, dirMode), os.Chmod(dir, dirMode)); err != nil {
		return err
	}
	part, err := os.CreateTemp(dir, "."+filepath.Base(path)+".part-")
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
