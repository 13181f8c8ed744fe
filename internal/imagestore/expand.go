package imagestore

import (
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/klauspost/compress/zstd"

	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/imagestore/diskfile"
	"burrow.dev/burrow/internal/imagestore/tool"
)

// method is how a file is compressed.
type method string

const (
	plain   method = ""
	gzipped method = "gzip"
	bzipped method = "bzip2"
	xzipped method = "xz"
	zstded  method = "zstd"
)

// magics are the first bytes of each.
var magics = map[method]string{
	gzipped: "\x1f\x8b", bzipped: "BZh", xzipped: "\xfd7zXZ\x00", zstded: "\x28\xb5\x2f\xfd",
}

const (
	// maxExpanded bounds what a small file may become.
	maxExpanded = 1 << 40
	// roomCheckEvery is how many written bytes pass between two looks at the free space.
	roomCheckEvery = 64 << 20
	// decoderMemory bounds the window an archive may ask for.
	decoderMemory = 512 << 20
	// zeroBlock is the piece that becomes a hole when all of it is zero.
	zeroBlock = 64 << 10
)

// compression looks at a file's first bytes; the name is no proof.
func compression(f *os.File) (method, error) {
	b := make([]byte, 8)
	n, err := f.ReadAt(b, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return plain, err
	}
	for m, magic := range magics {
		if bytes.HasPrefix(b[:n], []byte(magic)) {
			return m, nil
		}
	}
	return plain, nil
}

// expand writes src's content, decompressed, to the file part; zeros become holes.
func expand(ctx context.Context, object string, m method, src *os.File, size int64, part string, report Report) error {
	dst, err := os.OpenFile(part, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return err
	}
	defer dst.Close()
	if _, err := src.Seek(0, io.SeekStart); err != nil {
		return err
	}
	stage := "copy"
	if m != plain {
		stage = "expand"
	}
	in := &counted{r: src, tell: func(done int64) { report(stage, done, size) }}
	out := &sparse{f: dst, dir: filepath.Dir(part)}
	if err := decompress(ctx, m, in, out); err != nil {
		if errors.Is(err, errDamaged) {
			return errs.NewPermanent(object, "expand", fmt.Errorf("%w: %w", errs.ErrInvalid, err), "the file is damaged or cut short: get it again")
		}
		return err
	}
	return out.finish()
}

var errDamaged = errors.New("compressed data is damaged")

func decompress(ctx context.Context, m method, in io.Reader, out io.Writer) error {
	var r io.Reader
	switch m {
	case xzipped:
		return unxz(ctx, in, out)
	case gzipped:
		z, err := gzip.NewReader(in)
		if err != nil {
			return fmt.Errorf("%w: %w", errDamaged, err)
		}
		defer z.Close()
		r = damaged{z}
	case zstded:
		z, err := zstd.NewReader(in, zstd.WithDecoderMaxMemory(decoderMemory), zstd.WithDecoderMaxWindow(decoderMemory))
		if err != nil {
			return fmt.Errorf("%w: %w", errDamaged, err)
		}
		defer z.Close()
		r = damaged{z}
	case bzipped:
		r = damaged{bzip2.NewReader(in)}
	default:
		r = in
	}
	_, err := diskfile.Copy(ctx, out, r, nil)
	return err
}

// unxz runs xz: no decoder of it is among the program's modules.
func unxz(ctx context.Context, in io.Reader, out io.Writer) error {
	kept := &keepError{w: out}
	err := tool.Run(ctx, tool.Command{
		Name: "xz", Stdin: in, Stdout: kept,
		Args: []string{"--decompress", "--stdout", "--quiet", fmt.Sprintf("--memlimit-decompress=%d", decoderMemory)},
	})
	var failed *tool.Error
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case kept.err != nil:
		return kept.err
	case errors.Is(err, exec.ErrNotFound):
		return errs.NewOperator("xz", "expand", err, "apt-get install xz-utils")
	case errors.As(err, &failed):
		return fmt.Errorf("%w: %w", errDamaged, err)
	}
	return err
}

// damaged marks a decoder's errors: the input is at fault, not the disk.
type damaged struct{ r io.Reader }

func (d damaged) Read(p []byte) (int, error) {
	n, err := d.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = fmt.Errorf("%w: %w", errDamaged, err)
	}
	return n, err
}

// keepError remembers why writing failed, which a pipe would hide.
type keepError struct {
	w   io.Writer
	err error
}

func (k *keepError) Write(p []byte) (int, error) {
	n, err := k.w.Write(p)
	if err != nil {
		k.err = err
	}
	return n, err
}

// counted tells how much has been read.
type counted struct {
	r    io.Reader
	done int64
	tell func(done int64)
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.done += int64(n)
	c.tell(c.done)
	return n, err
}

// sparse writes a file with holes for zeros, within bounds of size and free space.
type sparse struct {
	f       *os.File
	dir     string
	at      int64
	checked int64
}

var zeros [zeroBlock]byte

func (s *sparse) Write(p []byte) (int, error) {
	if s.at+int64(len(p)) > maxExpanded {
		return 0, fmt.Errorf("%w: more than %d GiB", errDamaged, int64(maxExpanded)>>30)
	}
	for done := 0; done < len(p); {
		block := p[done:min(done+zeroBlock, len(p))]
		if !bytes.Equal(block, zeros[:len(block)]) {
			if s.checked -= int64(len(block)); s.checked < 0 {
				if err := checkRoom(s.dir, roomCheckEvery); err != nil {
					return done, err
				}
				s.checked = roomCheckEvery
			}
			if _, err := s.f.WriteAt(block, s.at); err != nil {
				return done, err
			}
		}
		s.at += int64(len(block))
		done += len(block)
	}
	return len(p), nil
}

// finish gives the file its whole length: it may end in a hole.
func (s *sparse) finish() error {
	if err := s.f.Truncate(s.at); err != nil {
		return err
	}
	return s.f.Close()
}
