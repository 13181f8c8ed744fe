package backup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"burrow.dev/burrow/internal/blob"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/etcdstate"
)

// settleTries bounds how often the records are read again because blobs that they name
// have come or gone meanwhile.
const settleTries = 10

// Records are the keys of etcd.
type Records interface {
	EachKept(ctx context.Context, rev int64, fn func(etcdstate.Kept) error) (int64, error)
}

// Blobs are the bundles and logs.
type Blobs interface {
	GetSized(ctx context.Context, key string) (io.ReadCloser, int64, error)
	Intact(ctx context.Context, key string) (bool, error)
	ListSince(ctx context.Context, prefix string, since time.Time) ([]string, error)
}

// History is a snapshot of Temporal's database, which nobody writes to.
type History struct {
	Database     io.Reader
	DatabaseSize int64
	// Schema is schema.json beside the database.
	Schema []byte
}

// Create writes a backup to w while everything goes on. history is nil where Temporal's
// store is not SQLite or not wanted; it must have been taken before Create is called.
func Create(ctx context.Context, w io.Writer, header Header, records Records, blobs Blobs, history *History) (End, error) {
	header.Format = FormatVersion
	out, err := newWriter(w, header.Made)
	if err != nil {
		return End{}, err
	}
	c := &creation{writer: out, records: records, blobs: blobs, written: map[string]bool{}}
	end, err := c.run(ctx, header, history)
	if err != nil {
		out.abandon()
		return End{}, err
	}
	return end, nil
}

type creation struct {
	*writer
	records Records
	blobs   Blobs
	written map[string]bool // blobs that are in the file
}

func (c *creation) run(ctx context.Context, header Header, history *History) (End, error) {
	end := End{History: history != nil}
	if err := c.json(headerName, header); err != nil {
		return end, err
	}
	if history != nil {
		if err := c.entry(schemaName, int64(len(history.Schema)), bytes.NewReader(history.Schema)); err != nil {
			return end, err
		}
		if err := c.entry(databaseName, history.DatabaseSize, reading{ctx, history.Database}); err != nil {
			return end, err
		}
	}
	var err error
	if end.Revision, end.Missing, err = c.settle(ctx); err != nil {
		return end, err
	}
	end.Blobs = len(c.written)
	if err := c.writeRecords(ctx, &end); err != nil {
		return end, err
	}
	return end, c.end(end)
}

// settle writes blobs until every one that the records name at some revision is in the
// file, and gives that revision. Blobs come and go while it works: one that a record named
// a moment ago and that is gone is asked of the records again; one that came is added.
func (c *creation) settle(ctx context.Context) (rev int64, missing []string, err error) {
	for range settleTries {
		named, rev, err := c.named(ctx)
		if err != nil {
			return 0, nil, err
		}
		gone, err := c.writeBlobs(ctx, named)
		if err != nil {
			return 0, nil, err
		}
		if len(gone) == 0 || slices.Equal(gone, missing) {
			return rev, gone, c.writeMore(ctx, rev)
		}
		missing = gone // named at one revision: still so at the next?
	}
	return 0, nil, errs.NewTransient("backup", "collect blobs", errs.Reason("%w %d times", errs.ErrConflict, settleTries))
}

// named gives the blobs that the records name, sorted, and the revision they do so at.
func (c *creation) named(ctx context.Context) ([]string, int64, error) {
	keys := map[string]bool{}
	rev, err := c.records.EachKept(ctx, 0, func(k etcdstate.Kept) error {
		rec, ok, err := etcdstate.RecordOf(k.Key, k.Value)
		if err != nil {
			return errs.NewOperator(k.Key, "decode record", err, "restore it, or delete the key")
		}
		if !ok {
			return nil
		}
		for _, key := range BlobsOf(rec.Status.Bundle, rec.Status.Playbook) {
			keys[key] = true
		}
		return nil
	})
	return slices.Sorted(maps.Keys(keys)), rev, err
}

// writeBlobs writes those that are not in the file yet, and gives those that are not there
// or damaged: one bad bundle must not be the end of all backups.
func (c *creation) writeBlobs(ctx context.Context, keys []string) (gone []string, err error) {
	for _, key := range keys {
		if c.written[key] {
			continue
		}
		err := c.writeBlob(ctx, key)
		switch {
		case errors.Is(err, errs.ErrNotFound):
			gone = append(gone, key)
		case err != nil:
			return nil, err
		}
	}
	return gone, nil
}

func (c *creation) writeBlob(ctx context.Context, key string) error {
	intact, err := c.blobs.Intact(ctx, key) // before its entry is begun: a tar takes nothing back
	if err != nil {
		return err
	}
	if !intact {
		return errs.ErrNotFound
	}
	r, size, err := c.blobs.GetSized(ctx, key)
	if err != nil {
		return err
	}
	defer r.Close()
	if err := c.entry(blobFolder+key, size, reading{ctx, r}); err != nil {
		return err
	}
	c.written[key] = true
	return nil
}

// writeMore adds what no record names but is missed after a restore: earlier logs of
// servers, and bundles that open operations may have been given by a retry. What is gone
// by then is left out.
func (c *creation) writeMore(ctx context.Context, rev int64) error {
	var logs []string
	var since time.Time
	_, err := c.records.EachKept(ctx, rev, func(k etcdstate.Kept) error {
		rec, ok, err := etcdstate.RecordOf(k.Key, k.Value)
		if !ok || err != nil {
			return err
		}
		if rec.Status.Playbook != nil {
			logs = append(logs, rec.Metadata.UID)
		}
		if op := rec.Status.Operation; op != nil && (since.IsZero() || op.Since.Before(since)) {
			since = op.Since
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, uid := range logs {
		keys, err := c.blobs.ListSince(ctx, blob.LogFolder(uid), time.Time{})
		if err == nil {
			_, err = c.writeBlobs(ctx, keys)
		}
		if err != nil {
			return err
		}
	}
	if since.IsZero() {
		return nil
	}
	keys, err := c.blobs.ListSince(ctx, blob.BundleFolder, since)
	if err == nil {
		_, err = c.writeBlobs(ctx, keys)
	}
	return err
}

// writeRecords writes the keys as of the revision, in pages.
func (c *creation) writeRecords(ctx context.Context, end *End) error {
	var page bytes.Buffer
	pages := 0
	flush := func() error {
		if page.Len() == 0 {
			return nil
		}
		pages++
		defer page.Reset()
		return c.entry(fmt.Sprintf("%s%06d%s", recordFolder, pages, recordSuffix), int64(page.Len()), &page)
	}
	_, err := c.records.EachKept(ctx, end.Revision, func(k etcdstate.Kept) error {
		line, err := lineOf(k)
		if err != nil {
			return fmt.Errorf("backup: encode %s: %w", k.Key, err)
		}
		end.count(k.Key)
		page.Write(line)
		if page.Len() >= pageBytes {
			return flush()
		}
		return nil
	})
	if err != nil {
		return err
	}
	return flush()
}

// count counts one key.
func (e *End) count(key string) {
	e.Keys++
	folder, _, _ := strings.Cut(key, "/")
	switch {
	case folder == "secrets":
		e.Secrets++
	case etcdstate.IsRecord(key):
		e.Records++
	}
}

// reading ends with the context.
type reading struct {
	ctx context.Context
	r   io.Reader
}

// Read implements io.Reader.
func (r reading) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.r.Read(p)
}
