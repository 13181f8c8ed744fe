package backup

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/etcdstate"
)

// content reads what an entry holds, as its stage says.
func (f *file) content(name string, size int64, r io.Reader) error {
	switch f.stage {
	case stageHeader:
		return f.readHeader(size, r)
	case stageSchema:
		text, err := f.small(name, size, mostHeader, r)
		if err != nil || f.schema == nil {
			return err
		}
		return f.visit(f.schema(text))
	case stageDatabase:
		f.counts.History = true
		if f.database != nil {
			return f.visit(f.database(size, f.clean(r)))
		}
	case stageBlobs:
		return f.readBlob(name, size, r)
	case stageRecords:
		return f.readRecords(name, size, r)
	case stageSums:
		return f.readSums(size, r)
	case stageEnd:
		return f.readEnd(size, r)
	}
	return nil
}

// visit keeps an error of the visitor's from being taken for the file's. One that the
// file caused while the visitor read it stays the file's.
func (f *file) visit(err error) error {
	if err != nil && !errors.Is(err, errRead) {
		f.visiting = err
	}
	return err
}

// errRead marks errors of reading the file inside a visitor.
var errRead = errors.New("read backup")

// clean marks the errors of r.
func (f *file) clean(r io.Reader) io.Reader { return marking{r} }

type marking struct{ r io.Reader }

// Read implements io.Reader.
func (m marking) Read(p []byte) (int, error) {
	n, err := m.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = fmt.Errorf("%w: %w", errRead, err)
	}
	return n, err
}

// small reads an entry that is kept in memory.
func (f *file) small(name string, size, most int64, r io.Reader) ([]byte, error) {
	if size > most {
		return nil, damaged("%s has %d bytes", name, size)
	}
	return io.ReadAll(r)
}

func (f *file) readHeader(size int64, r io.Reader) error {
	text, err := f.small(headerName, size, mostHeader, r)
	if err != nil {
		return err
	}
	var format struct {
		Format int `json:"format"`
	}
	if err := json.Unmarshal(text, &format); err != nil {
		return damaged("%s: %w", headerName, err)
	}
	if format.Format != FormatVersion {
		return errs.NewPermanent("backup", "read", errs.Reason("%w: its format is %d, this burrow reads %d", errs.ErrInvalid, format.Format, FormatVersion),
			"use the burrow that made it, or a newer one")
	}
	var h Header
	if err := json.Unmarshal(text, &h); err != nil {
		return damaged("%s: %w", headerName, err)
	}
	if f.header == nil {
		return nil
	}
	return f.visit(f.header(h))
}

func (f *file) readBlob(name string, size int64, r io.Reader) error {
	key, err := blobKey(name)
	if err != nil {
		return err
	}
	if f.blobs[key] {
		return damaged("the blob %s is in it twice", key)
	}
	f.blobs[key] = true
	f.counts.Blobs++
	if f.blob == nil {
		return nil
	}
	return f.visit(f.blob(key, size, f.clean(r)))
}

func (f *file) readRecords(name string, size int64, r io.Reader) error {
	f.pages++
	if name != fmt.Sprintf("%s%06d%s", recordFolder, f.pages, recordSuffix) || size > mostPage {
		return damaged("the entry %.200q (%d bytes) is not where it belongs", name, size)
	}
	lines := bufio.NewReaderSize(r, 64<<10)
	for {
		text, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) && len(text) == 0 {
			return nil
		}
		if errors.Is(err, io.EOF) {
			return damaged("a record is cut off")
		}
		if err != nil {
			return err
		}
		var l Line
		if err := json.Unmarshal(bytes.TrimSuffix(text, []byte("\n")), &l); err != nil {
			return damaged("a record: %w", err)
		}
		if err := l.check(f.last); err != nil {
			return err
		}
		f.last = l.Key
		f.counts.count(l.Key)
		if err := f.named(l); err != nil {
			return err
		}
		if f.record != nil {
			if err := f.visit(f.record(l)); err != nil {
				return err
			}
		}
	}
}

// named checks that the blobs that a record names are in the file, or known to be missing.
func (f *file) named(l Line) error {
	rec, ok, err := etcdstate.RecordOf(l.Key, l.Value)
	if err != nil {
		return damaged("the record %s: %w", l.Key, err)
	}
	if !ok {
		return nil
	}
	for _, key := range BlobsOf(rec.Status.Bundle, rec.Status.Playbook) {
		if !f.blobs[key] && !slices.Contains(f.counts.Missing, key) {
			f.counts.Missing = append(f.counts.Missing, key)
		}
	}
	return nil
}

func (f *file) readSums(size int64, r io.Reader) error {
	if size > mostSums {
		return damaged("%s has %d bytes", sumsName, size)
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, r); err != nil {
		return err
	}
	if !bytes.Equal(sum.Sum(nil), f.sums.Sum(nil)) {
		return damaged("what it holds does not fit its %s", sumsName)
	}
	f.counts.Sums = hex.EncodeToString(sum.Sum(nil))
	return nil
}

func (f *file) readEnd(size int64, r io.Reader) error {
	text, err := f.small(endName, size, mostSums, r)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, &f.end); err != nil {
		return damaged("%s: %w", endName, err)
	}
	want := f.end
	f.counts.Revision = want.Revision
	slices.Sort(f.counts.Missing)
	if got := f.counts; got.Keys != want.Keys || got.Records != want.Records || got.Secrets != want.Secrets || got.Blobs != want.Blobs ||
		got.History != want.History || got.Sums != want.Sums || !slices.Equal(got.Missing, want.Missing) {
		return damaged("what it holds does not fit its %s", endName)
	}
	return nil
}
