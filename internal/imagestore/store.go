package imagestore

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/imagestore/build"
	"burrow.dev/burrow/internal/imagestore/diskfile"
)

// Report is told how far a step is: what it does, bytes done, bytes in all (0: unknown).
type Report func(stage string, done, total int64)

// Options say where a store keeps its files.
type Options struct {
	// Dir is the host's cache folder (config.Host.CacheDir); made when absent.
	Dir string
	Log *slog.Logger
	// Client does the downloads; default: one that honours the proxy variables.
	Client *http.Client
}

// Store is a host's image cache: downloads under way, built images, and the marks of
// what was verified. Safe for use by many goroutines and processes.
type Store struct {
	dir    string
	log    *slog.Logger
	client *http.Client
	pause  time.Duration
}

// New makes a store. Nothing is touched before the first use.
func New(o Options) *Store {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Client == nil {
		o.Client = newClient()
	}
	return &Store{dir: o.Dir, log: o.Log, client: o.Client, pause: retryPause}
}

// Build gives the locally built image of a distribution; see build.Build.
func (s *Store) Build(ctx context.Context, distro string, report Report) (build.Image, error) {
	return build.Build(ctx, build.Options{
		Dir: s.imagesDir(), Log: s.log, Stage: func(stage string) { report(stage, 0, 0) },
	}, distro)
}

// Lock takes the lock of a name, so that callers that want the same image take turns.
func (s *Store) Lock(ctx context.Context, name string) (unlock func(), err error) {
	if err := os.MkdirAll(s.locksDir(), 0o700); err != nil {
		return nil, diskError(name, "lock", err)
	}
	sum := sha256.Sum256([]byte(name))
	unlock, err = diskfile.Lock(ctx, filepath.Join(s.locksDir(), "name-"+hex.EncodeToString(sum[:8])))
	return unlock, diskError(name, "lock", err)
}

func (s *Store) imagesDir() string    { return filepath.Join(s.dir, "images") }
func (s *Store) downloadsDir() string { return filepath.Join(s.dir, "downloads") }
func (s *Store) marksDir() string     { return filepath.Join(s.dir, "verified") }
func (s *Store) locksDir() string     { return filepath.Join(s.dir, "locks") }

// diskError gives an error of the host's file system its class: a full disk and missing
// rights are the operator's, everything else may pass.
func diskError(object, action string, err error) error {
	var known *errs.Error
	var classed *lastingError
	var path *os.PathError
	where := "there"
	if errors.As(err, &path) {
		where = "in " + filepath.Dir(path.Path)
	}
	switch {
	case err == nil || errors.As(err, &known) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.As(err, &classed):
		return errs.New(classed.class, object, action, classed.err, classed.next)
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT), errors.Is(err, syscall.EFBIG):
		return errs.NewOperator(object, action, errors.Join(errs.ErrNoSpace, err), "make room "+where+": burrow image list shows what is not used")
	case errors.Is(err, os.ErrPermission), errors.Is(err, syscall.EROFS):
		return errs.NewOperator(object, action, err, "the host worker must be able to write "+where)
	}
	return errs.NewTransient(object, action, err)
}
