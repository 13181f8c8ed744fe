package ansible

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"burrow.dev/burrow/internal/ansiblex"
	"burrow.dev/burrow/internal/blob"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
)

// followEvery is how often a followed log is looked at for more; a file that root alone
// writes needs no cleverer way.
const followEvery = 200 * time.Millisecond

// logKey is where the log of a run is kept, under its first server.
func logKey(rec ansiblex.Record) string { return blob.LogKey(rec.ServerUIDs[0], rec.ID) }

// store closes the log and puts it into the blob store, once for each server. It goes on
// when ctx is cancelled: a cancelled run's log is worth as much.
func (a *Activities) store(ctx context.Context, f *ansiblex.Folder, log *ansiblex.Log, rec ansiblex.Record) error {
	err := log.Close()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), uploadTimeout)
	defer cancel()
	for _, uid := range rec.ServerUIDs {
		err = errors.Join(err, a.put(ctx, blob.LogKey(uid, rec.ID), f.LogFile()))
	}
	if err != nil {
		return errs.NewTransient(rec.Owner, "store run log", err)
	}
	return nil
}

func (a *Activities) put(ctx context.Context, key, file string) error {
	r, err := os.Open(file)
	if err != nil {
		return err
	}
	defer r.Close()
	return a.o.Blobs.Put(ctx, key, r)
}

// Logs reads the logs of runs, also while they run.
type Logs struct{ a *Activities }

// Logs gives the reader of this worker's runs.
func (a *Activities) Logs() Logs { return Logs{a} }

// Open gives the log of a server's run; run "" is the latest. With follow, reading a run
// that is going on waits for more until it ends or ctx does. No run: errs.ErrNotFound.
func (l Logs) Open(ctx context.Context, server manifest.Record, run string, follow bool) (io.ReadCloser, error) {
	uid := server.Metadata.UID
	live, err := l.live(uid, run)
	if err != nil {
		return nil, err
	}
	if live != "" {
		f := ansiblex.OpenFolder(l.a.o.RunsDir, live)
		file, err := os.Open(f.LogFile())
		if err == nil && follow {
			return &follower{ctx: ctx, file: file, folder: f}, nil
		}
		if err == nil || !errors.Is(err, fs.ErrNotExist) {
			return file, err
		}
	}
	if run == "" {
		runs, err := l.Runs(ctx, server)
		if err != nil {
			return nil, err
		}
		if len(runs) == 0 {
			return nil, fmt.Errorf("no playbook has run: %w", errs.ErrNotFound)
		}
		run = runs[0]
	}
	if run != path.Base(run) || run == "" {
		return nil, fmt.Errorf("run %q: %w", run, errs.ErrNotFound)
	}
	return l.a.o.Blobs.Get(ctx, blob.LogKey(uid, run))
}

// Runs gives the ids of the server's runs that have a log here or in the store, latest
// first: names sort by time.
func (l Logs) Runs(ctx context.Context, server manifest.Record) ([]string, error) {
	uid := server.Metadata.UID
	keys, err := l.a.o.Blobs.List(ctx, blob.LogFolder(uid))
	if err != nil {
		return nil, err
	}
	var runs []string
	for _, key := range keys {
		runs = append(runs, strings.TrimSuffix(path.Base(key), ".log"))
	}
	records, err := ansiblex.Records(l.a.o.RunsDir)
	if err != nil {
		return nil, err
	}
	for _, rec := range records {
		if rec.Of(uid) {
			runs = append(runs, rec.ID)
		}
	}
	slices.Sort(runs)
	slices.Reverse(runs)
	return slices.Compact(runs), nil // one that ends meanwhile is in both
}

// live finds the latest run of the server that is going on here.
func (l Logs) live(uid, run string) (string, error) {
	records, err := ansiblex.Records(l.a.o.RunsDir)
	if err != nil {
		return "", err
	}
	for _, rec := range slices.Backward(records) {
		if rec.Of(uid) && (run == "" || run == rec.ID) {
			return rec.ID, nil
		}
	}
	return "", nil
}

// follower reads a log that grows until its run's folder is gone.
type follower struct {
	ctx    context.Context
	file   *os.File
	folder *ansiblex.Folder
}

// Read waits for more. The file stays readable after the folder was removed.
func (f *follower) Read(p []byte) (int, error) {
	ticker := time.NewTicker(followEvery)
	defer ticker.Stop()
	for {
		_, statErr := os.Stat(f.folder.LogFile()) // before reading: what was written until now is read
		n, err := f.file.Read(p)
		if n > 0 || err != nil && !errors.Is(err, io.EOF) {
			return n, err
		}
		if statErr != nil {
			return 0, io.EOF
		}
		select {
		case <-f.ctx.Done():
			return 0, f.ctx.Err()
		case <-ticker.C:
		}
	}
}

// Close implements io.Closer.
func (f *follower) Close() error { return f.file.Close() }
