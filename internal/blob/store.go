package blob

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"gocloud.dev/blob"
	"gocloud.dev/blob/fileblob"
	"gocloud.dev/gcerrors"

	"burrow.dev/burrow/internal/errs"
)

const (
	// dirMode and fileMode close the store to everybody but root: bundles and logs
	// are users' files.
	dirMode  = 0o700
	fileMode = 0o600
	// temporarySuffix ends the names of files that are still being written.
	temporarySuffix = ".tmp"
	// abandonedAfter is longer than any blob takes to be written.
	abandonedAfter = 24 * time.Hour
	// contentType is set so that the driver need not guess from the first bytes.
	contentType = "application/octet-stream"
)

// Store is a place for blobs. It is safe for concurrent use.
type Store struct {
	bucket *blob.Bucket
	dir    string // of a file:// store; empty otherwise
}

// Open opens the store at a URL: "file:///var/lib/burrow/blobs"; the directory is made.
// Any other scheme is a Permanent error.
func Open(ctx context.Context, storeURL string) (*Store, error) {
	u, err := url.Parse(storeURL)
	if err != nil || u.Scheme != fileblob.Scheme || !filepath.IsAbs(u.Path) || (u.Host != "" && u.Host != "localhost") {
		return nil, errs.NewPermanent("blob store "+quote(storeURL), "open",
			errs.Reason("%w: not a file:///absolute/path URL", errs.ErrInvalid), "correct \"blobs\" in worker.json")
	}
	dir := filepath.Clean(u.Path)
	if err := os.MkdirAll(dir, dirMode); err != nil {
		return nil, errs.NewOperator("blob store "+dir, "make its directory", err, "make the directory writable for the worker")
	}
	if err := removeAbandoned(dir, time.Now()); err != nil {
		return nil, errs.NewOperator("blob store "+dir, "remove what a killed worker left half written", err, "make the directory writable for the worker")
	}
	// Temporary files stand beside the final ones, so that the rename never crosses a file system.
	bucket, err := fileblob.OpenBucket(dir, &fileblob.Options{
		NoTempDir: true, Metadata: fileblob.MetadataDontWrite, DirFileMode: dirMode,
	})
	if err != nil {
		return nil, translate("store", dir, "open", err)
	}
	return &Store{bucket: bucket, dir: dir}, ctx.Err()
}

// removeAbandoned deletes files that have long been half written: their writer was killed.
func removeAbandoned(dir string, now time.Time) error {
	return filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, temporarySuffix) {
			return err
		}
		info, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) || err == nil && now.Sub(info.ModTime()) < abandonedAfter {
			return nil
		}
		return errors.Join(err, os.Remove(path))
	})
}

// Close releases the store.
func (s *Store) Close() error { return s.bucket.Close() }

// Put stores all of r under key, replacing what was there. The blob is on disk when Put
// returns; when r fails, ctx ends, or a content-addressed key's digest does not match
// (Permanent, errs.ErrInvalid), nothing has changed.
func (s *Store) Put(ctx context.Context, key string, r io.Reader) error {
	if err := CheckKey(key); err != nil {
		return err
	}
	// Cancelling is how a driver is told to throw a half-written blob away.
	writing, abort := context.WithCancel(ctx)
	defer abort()
	var file *os.File
	w, err := s.bucket.NewWriter(writing, key, &blob.WriterOptions{
		ContentType: contentType,
		BeforeWrite: func(as func(any) bool) error {
			if as(&file) {
				return file.Chmod(fileMode)
			}
			return nil
		},
	})
	if err != nil {
		return translate("blob", key, "write", err)
	}
	sum := sha256.New()
	_, err = io.Copy(io.MultiWriter(w, sum), r)
	if err == nil {
		err = matches(key, sum)
	}
	if err == nil && file != nil {
		err = file.Sync()
	}
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		abort()
		_ = w.Close() // always reports the abort
		return translate("blob", key, "write", err)
	}
	if err := w.Close(); err != nil {
		return translate("blob", key, "write", err)
	}
	return translate("blob", key, "write", s.syncDirs(key))
}

// syncDirs makes the name of a blob as durable as its bytes.
func (s *Store) syncDirs(key string) error {
	if s.dir == "" {
		return nil
	}
	for dir := filepath.Dir(filepath.Join(s.dir, filepath.FromSlash(key))); ; dir = filepath.Dir(dir) {
		d, err := os.Open(dir)
		if err != nil {
			return err
		}
		if err := errors.Join(d.Sync(), d.Close()); err != nil {
			return err
		}
		if dir == s.dir || dir == filepath.Dir(dir) {
			return nil
		}
	}
}

// Get opens a blob; absent is errs.ErrNotFound. A content-addressed one that does not
// hold what its key promises fails with errs.ErrInvalid instead of io.EOF.
func (s *Store) Get(ctx context.Context, key string) (io.ReadCloser, error) {
	r, _, err := s.GetSized(ctx, key)
	return r, err
}

// GetSized is Get, and tells how many bytes there will be.
func (s *Store) GetSized(ctx context.Context, key string) (io.ReadCloser, int64, error) {
	if err := CheckKey(key); err != nil {
		return nil, 0, err
	}
	r, err := s.bucket.NewReader(ctx, key, nil)
	if err != nil {
		return nil, 0, translate("blob", key, "read", err)
	}
	if _, ok := contentDigest(key); !ok {
		return r, r.Size(), nil
	}
	return &verified{ReadCloser: r, key: key, sum: sha256.New()}, r.Size(), nil
}

// Exists reports whether a blob is there.
func (s *Store) Exists(ctx context.Context, key string) (bool, error) {
	if err := CheckKey(key); err != nil {
		return false, err
	}
	ok, err := s.bucket.Exists(ctx, key)
	return ok, translate("blob", key, "look up", err)
}

// Intact reports whether a blob is there and, when it is content-addressed, whole: it
// is read to the end.
func (s *Store) Intact(ctx context.Context, key string) (bool, error) {
	r, err := s.Get(ctx, key)
	if errors.Is(err, errs.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	_, err = io.Copy(io.Discard, r)
	err = errors.Join(err, r.Close())
	if errors.Is(err, errs.ErrInvalid) {
		return false, nil
	}
	return err == nil, translate("blob", key, "read", err)
}

// Delete removes a blob; an absent one is success.
func (s *Store) Delete(ctx context.Context, key string) error {
	if err := CheckKey(key); err != nil {
		return err
	}
	err := s.bucket.Delete(ctx, key)
	if gcerrors.Code(err) == gcerrors.NotFound {
		return nil
	}
	return translate("blob", key, "delete", err)
}

// List gives the keys that begin with prefix, sorted. Blobs that are still being
// written are not among them.
func (s *Store) List(ctx context.Context, prefix string) ([]string, error) {
	return s.ListSince(ctx, prefix, time.Time{})
}

// ListSince is List of those that were written at or after a time.
func (s *Store) ListSince(ctx context.Context, prefix string, since time.Time) ([]string, error) {
	var keys []string
	objects := s.bucket.List(&blob.ListOptions{Prefix: prefix})
	for {
		object, err := objects.Next(ctx)
		if errors.Is(err, io.EOF) {
			slices.Sort(keys)
			return keys, nil
		}
		if err != nil {
			return nil, translate("blobs", prefix, "list", err)
		}
		if !strings.HasSuffix(object.Key, temporarySuffix) && !object.ModTime.Before(since) {
			keys = append(keys, object.Key)
		}
	}
}

// verified checks the digest when the blob has been read to its end.
type verified struct {
	io.ReadCloser
	key string
	sum hash.Hash
}

func (v *verified) Read(p []byte) (int, error) {
	n, err := v.ReadCloser.Read(p)
	v.sum.Write(p[:n])
	if errors.Is(err, io.EOF) {
		if bad := matches(v.key, v.sum); bad != nil {
			return n, bad
		}
	}
	return n, err
}

// matches compares what was read with what the key promises.
func matches(key string, sum hash.Hash) error {
	want, ok := contentDigest(key)
	if got := hex.EncodeToString(sum.Sum(nil)); ok && got != want {
		return errs.NewPermanent("blob "+key, "check its digest",
			errs.Reason("%w: the content has sha256 %s", errs.ErrInvalid, got), "send the bundle again")
	}
	return nil
}

func quote(key string) string { return strconv.Quote(key) }
