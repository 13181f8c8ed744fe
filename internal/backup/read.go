package backup

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"strings"

	"github.com/klauspost/compress/zstd"

	"burrow.dev/burrow/internal/errs"
)

// visitor gets what a file holds, in its order. A nil function skips.
type visitor struct {
	header   func(Header) error
	schema   func([]byte) error
	database func(size int64, r io.Reader) error
	blob     func(key string, size int64, r io.Reader) error
	record   func(Line) error
}

// read reads a whole file and refuses (errs.ErrInvalid) what is damaged, cut off, of another
// format, or not in the order that Create writes. What it has passed on by then was right
// in itself only: nothing is sure before it returns nil.
func read(ctx context.Context, r io.Reader, v visitor) (End, error) {
	zst, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderLowmem(true))
	if err != nil {
		return End{}, fmt.Errorf("backup: start decompression: %w", err)
	}
	defer zst.Close()
	f := &file{visitor: v, ctx: ctx, tar: tar.NewReader(zst), sums: sha256.New()}
	err = f.run()
	if err == nil {
		// The end of the compressed stream has a checksum of its own, and nothing may follow.
		if _, more := io.ReadFull(zst, make([]byte, 1)); more == nil {
			err = damaged("something follows its end")
		} else if !errors.Is(more, io.EOF) {
			err = more
		}
	}
	return f.end, f.translate(err)
}

// file is one reading.
type file struct {
	visitor
	ctx    context.Context
	tar    *tar.Reader
	sums   hash.Hash // of what SHA256SUMS must be
	stage  int
	pages  int
	last   string // key
	counts End
	end    End
	blobs  map[string]bool
	// visiting is set while an error is the visitor's own and not the file's.
	visiting error
}

// Stages of a file, in order.
const (
	stageHeader = iota
	stageSchema
	stageDatabase
	stageBlobs
	stageRecords
	stageSums
	stageEnd
)

// translate says of errors of tar and zstd that the file is damaged.
func (f *file) translate(err error) error {
	var own *errs.Error
	switch {
	case err == nil, f.ctx.Err() != nil && errors.Is(err, f.ctx.Err()):
		return err
	case f.visiting != nil:
		return f.visiting
	case errors.As(err, &own):
		return err
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		if f.stage == stageHeader && f.counts.Keys == 0 && f.blobs == nil {
			return damaged("it is no backup of burrow, or was cut off at its beginning")
		}
		return damaged("it was cut off")
	case errors.Is(err, zstd.ErrMagicMismatch):
		return damaged("it is no backup of burrow (%w)", err)
	}
	return damaged("%w", err)
}

func (f *file) run() error {
	for {
		header, err := f.tar.Next()
		if errors.Is(err, io.EOF) {
			if f.stage != stageEnd {
				return io.ErrUnexpectedEOF
			}
			return nil
		}
		if err != nil {
			return err
		}
		if header.Typeflag != tar.TypeReg || header.Size < 0 {
			return damaged("the entry %.200q is not a file", header.Name)
		}
		if err := f.entry(header.Name, header.Size); err != nil {
			return err
		}
	}
}

// entry reads one entry, and notes its sum.
func (f *file) entry(name string, size int64) error {
	if f.stage == stageEnd {
		return damaged("the entry %.200q follows its end", name)
	}
	if err := f.enter(name); err != nil {
		return err
	}
	sum := sha256.New()
	r := io.TeeReader(reading{f.ctx, f.tar}, sum)
	if err := f.content(name, size, r); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, r); err != nil { // what the visitor left
		return err
	}
	if f.stage < stageSums {
		fmt.Fprintf(f.sums, "%s  %s\n", hex.EncodeToString(sum.Sum(nil)), name)
	}
	return nil
}

// enter moves to the stage of an entry's name, forward only.
func (f *file) enter(name string) error {
	stage := map[string]int{
		headerName: stageHeader, schemaName: stageSchema, databaseName: stageDatabase, sumsName: stageSums, endName: stageEnd,
	}
	next, once := stage[name]
	switch {
	case once:
	case strings.HasPrefix(name, blobFolder):
		next = stageBlobs
	case strings.HasPrefix(name, recordFolder):
		next = stageRecords
	default:
		return damaged("it has an entry %.200q", name)
	}
	first := f.blobs == nil
	if first {
		f.blobs = map[string]bool{}
	}
	switch {
	case first != (next == stageHeader),
		next < f.stage, once && next == f.stage && !first,
		next == stageDatabase && f.stage != stageSchema, f.stage == stageSchema && next != stageDatabase,
		next == stageEnd && f.stage != stageSums:
		return damaged("the entry %.200q is not where it belongs", name)
	}
	f.stage = next
	return nil
}
