package backup

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/klauspost/compress/zstd"
)

// writer writes the entries of one backup and sums them up.
type writer struct {
	zst  *zstd.Encoder
	tar  *tar.Writer
	made time.Time
	sums bytes.Buffer
}

func newWriter(w io.Writer, made time.Time) (*writer, error) {
	zst, err := zstd.NewWriter(w, zstd.WithEncoderConcurrency(1))
	if err != nil {
		return nil, fmt.Errorf("backup: start compression: %w", err)
	}
	return &writer{zst: zst, tar: tar.NewWriter(zst), made: made}, nil
}

// entry writes size bytes of r, no more and no less.
func (w *writer) entry(name string, size int64, r io.Reader) error {
	header := &tar.Header{Name: name, Mode: 0o600, Size: size, ModTime: w.made.Truncate(time.Second), Format: tar.FormatPAX}
	if err := w.tar.WriteHeader(header); err != nil {
		return fmt.Errorf("backup: write %s: %w", name, err)
	}
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(w.tar, sum), r)
	if err != nil {
		return fmt.Errorf("backup: write %s: %w", name, err)
	}
	if n != size {
		return fmt.Errorf("backup: write %s: it has %d bytes, not %d", name, n, size)
	}
	fmt.Fprintf(&w.sums, "%s  %s\n", hex.EncodeToString(sum.Sum(nil)), name)
	return nil
}

func (w *writer) json(name string, value any) error {
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return fmt.Errorf("backup: encode %s: %w", name, err)
	}
	text = append(text, '\n')
	return w.entry(name, int64(len(text)), bytes.NewReader(text))
}

// end writes the sums and what makes the file complete.
func (w *writer) end(end End) error {
	sums := bytes.Clone(w.sums.Bytes())
	sum := sha256.Sum256(sums)
	end.Sums = hex.EncodeToString(sum[:])
	if err := w.entry(sumsName, int64(len(sums)), bytes.NewReader(sums)); err != nil {
		return err
	}
	if err := w.json(endName, end); err != nil {
		return err
	}
	if err := w.tar.Close(); err != nil {
		return fmt.Errorf("backup: end: %w", err)
	}
	if err := w.zst.Close(); err != nil {
		return fmt.Errorf("backup: end: %w", err)
	}
	return nil
}

// abandon gives back what the compression holds.
func (w *writer) abandon() { w.zst.Reset(nil); _ = w.zst.Close() }
