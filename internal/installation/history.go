package installation

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"burrow.dev/burrow/internal/errs"
)

// Files of Temporal's store, as burrow-devstack names them.
const (
	historyDatabase = "temporal.db"
	historySchema   = "schema.json"
	stagedDatabase  = "restored.db"
	stagedSchema    = "restored.json"
	// snapshotFolder begins the names of folders that a backup works in.
	snapshotFolder = ".backup-"
	// abandonedAfter is longer than any snapshot takes.
	abandonedAfter = time.Hour
)

func (f Folder) history(name string) string { return f.path("temporal", name) }

// HasHistory says that there is a store of Temporal.
func (f Folder) HasHistory() bool {
	_, err := os.Lstat(f.history(historyDatabase))
	return err == nil
}

// HistorySnapshot is Temporal's database as it was at one moment. Its file has no name any
// more, and is gone when it is closed.
type HistorySnapshot struct {
	*os.File
	Size   int64
	Schema []byte
}

// SnapshotHistory copies Temporal's database while its server runs.
func (f Folder) SnapshotHistory(ctx context.Context, devstack string) (*HistorySnapshot, error) {
	object := "Temporal's database " + f.history(historyDatabase)
	if err := f.removeSnapshots(time.Now().Add(-abandonedAfter)); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(string(f), snapshotFolder+"*") // 0700
	if err != nil {
		return nil, errs.NewOperator(object, "copy", err, "run as root; is the disk full?")
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, historyDatabase)
	if err := runDevstack(ctx, devstack, object, "copy", "database", "snapshot", "--data-dir", string(f), "--file", path); err != nil {
		return nil, err
	}
	schema, err := os.ReadFile(filepath.Join(dir, historySchema))
	if err != nil {
		return nil, errs.NewOperator(object, "copy", err, "")
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, errs.NewOperator(object, "copy", err, "")
	}
	info, err := file.Stat()
	if err != nil {
		return nil, errs.NewOperator(object, "copy", errors.Join(err, file.Close()), "")
	}
	return &HistorySnapshot{File: file, Size: info.Size(), Schema: schema}, nil
}

// removeSnapshots removes what killed backups left, if it is older than a time.
func (f Folder) removeSnapshots(before time.Time) error {
	dirs, err := filepath.Glob(f.path(snapshotFolder + "*"))
	if err != nil {
		return errs.NewPermanent("data directory "+string(f), "look for abandoned snapshots", err, "")
	}
	for _, dir := range dirs {
		info, err := os.Lstat(dir)
		if errors.Is(err, fs.ErrNotExist) || err == nil && info.ModTime().After(before) {
			continue
		}
		if err == nil {
			err = os.RemoveAll(dir)
		}
		if err != nil {
			return errs.NewOperator(dir, "remove", err, "run as root")
		}
	}
	return nil
}

// runDevstack runs one of its commands that serve nothing.
func runDevstack(ctx context.Context, devstack, object, action string, args ...string) error {
	command := exec.CommandContext(ctx, devstack, args...)
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C reaches it through ctx
	output, err := command.CombinedOutput()
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return errs.NewOperator(object, action, errs.Reason("%w: %s", err, bytes.TrimSpace(output)), "is the disk full? are burrow and burrow-devstack of one version?")
	}
	return nil
}

// StageHistory writes a database beside the one that is there, and refuses one that is
// damaged or that this burrow-devstack cannot use. Hold the folder's lock.
func (f Folder) StageHistory(ctx context.Context, devstack string, schema []byte, database io.Reader) error {
	object := "Temporal's database of the backup"
	if err := os.MkdirAll(f.path("temporal"), 0o700); err != nil {
		return errs.NewOperator(object, "write", err, "run as root")
	}
	err := writeWhole(f.history(stagedSchema), bytes.NewReader(schema))
	if err == nil {
		err = writeWhole(f.history(stagedDatabase), database)
	}
	if err != nil {
		return errors.Join(errs.NewOperator(object, "write", err, "is the disk full?"), f.UnstageHistory())
	}
	if err := runDevstack(ctx, devstack, object, "check", "database", "check", "--file", f.history(stagedDatabase)); err != nil {
		return errors.Join(err, f.UnstageHistory())
	}
	return nil
}

// UnstageHistory removes what StageHistory wrote. Nothing there is success.
func (f Folder) UnstageHistory() error { return f.removeHistory(stagedSchema, stagedDatabase) }

// ReplaceHistory puts the staged database in the place of the one that is there; without a
// staged one there is none after it. Hold the folder's lock, with nothing running.
func (f Folder) ReplaceHistory(staged bool) error {
	err := f.removeHistory(historyDatabase, historyDatabase+"-wal", historyDatabase+"-shm", historySchema)
	if err != nil || !staged {
		return err
	}
	for from, to := range map[string]string{stagedSchema: historySchema, stagedDatabase: historyDatabase} {
		if err := os.Rename(f.history(from), f.history(to)); err != nil {
			return errs.NewOperator("Temporal's database", "put in place", err, "run the restore again")
		}
	}
	dir, err := os.Open(f.path("temporal"))
	if err != nil {
		return errs.NewOperator("Temporal's database", "put in place", err, "run the restore again")
	}
	return errors.Join(dir.Sync(), dir.Close())
}

func (f Folder) removeHistory(names ...string) error {
	for _, name := range names {
		if err := os.Remove(f.history(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return errs.NewOperator(f.history(name), "remove", err, "run as root")
		}
	}
	return nil
}

// writeWhole writes a file, mode 0600, that is on disk when it returns.
func writeWhole(path string, r io.Reader) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, r)
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}
