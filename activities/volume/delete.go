package volume

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"burrow.dev/burrow/internal/errs"
)

// delete deletes a volume of ours, then its mark; none is success, and one that is not
// marked is not there for us.
func (a *Activities) delete(ctx context.Context, name string) error {
	unlock, err := a.names.Lock(ctx, name)
	if err != nil {
		return errs.NewTransient("volume "+name, "delete", err)
	}
	defer unlock()
	made, err := a.marks.has(name)
	if err != nil || !made {
		return err
	}
	return a.forget(ctx, name)
}

// forget deletes a marked volume and its mark, for whom has its lock.
func (a *Activities) forget(ctx context.Context, name string) error {
	if err := a.erase(ctx, name); err != nil {
		return err
	}
	return a.marks.drop(name)
}

// erase deletes a marked volume, whose mark stays. A file of that name which libvirt has
// not seen yet is shown to it first.
func (a *Activities) erase(ctx context.Context, name string) error {
	err := a.cfg.Libvirt.DeleteVolume(ctx, a.cfg.Pool, name)
	if !errors.Is(err, errs.ErrNotFound) {
		return err
	}
	_, there, err := a.file(ctx, name)
	if errors.Is(err, errs.ErrNotFound) {
		return nil // no pool, no volume
	}
	if err != nil || !there {
		return err
	}
	if err := a.cfg.Libvirt.RefreshPool(ctx, a.cfg.Pool); err != nil {
		return err
	}
	if err := a.cfg.Libvirt.DeleteVolume(ctx, a.cfg.Pool, name); !errors.Is(err, errs.ErrNotFound) {
		return err
	}
	return nil
}

// file looks for a volume's file, whoever's, also one that libvirt has not seen.
func (a *Activities) file(ctx context.Context, name string) (path string, there bool, err error) {
	dir, err := a.cfg.Libvirt.PoolDir(ctx, a.cfg.Pool)
	if err != nil {
		return "", false, err
	}
	path = filepath.Join(dir, name)
	switch _, err := os.Lstat(path); {
	case err == nil:
		return path, true, nil
	case errors.Is(err, os.ErrNotExist):
		return path, false, nil
	default:
		return path, false, errs.NewTransient("volume "+name, "look for its file", err)
	}
}
