package bundle

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/klauspost/compress/zstd"
)

// Unpack writes the archive's files below dir, which must exist and should be empty.
// The archive is not trusted: names and symlinks that lead out, entries other than
// files, folders and symlinks, and archives that grow past MaxBytes or MaxEntries are
// refused (Permanent). What was written until then stays: the caller removes dir.
// Files are 0644 or 0755, folders 0755, owned by the caller.
func Unpack(r io.Reader, dir string) error {
	if err := unpack(r, dir); err != nil {
		return refuse("bundle", "unpack", err)
	}
	return nil
}

func unpack(r io.Reader, dir string) error {
	dec, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow),
		zstd.WithDecoderLowmem(true))
	if err != nil {
		return err
	}
	defer dec.Close()
	// os.Root resolves every name below dir, also through symlinks made meanwhile.
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	// Headers count as well: the stream, not only the files, is bounded.
	const headerBytes = 2048
	tr := tar.NewReader(&limited{r: dec, left: MaxBytes + MaxEntries*headerBytes})
	var total int64
	for n := 0; ; n++ {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if total += h.Size; n >= MaxEntries || h.Size < 0 || total > MaxBytes {
			return fmt.Errorf("at most %d entries and %s are allowed: %w", MaxEntries, mib(MaxBytes), ErrTooLarge)
		}
		if err := extract(root, tr, h); err != nil {
			return err
		}
	}
}

// extract writes one entry below root.
func extract(root *os.Root, r io.Reader, h *tar.Header) error {
	name := filepath.Clean(filepath.FromSlash(h.Name))
	if !filepath.IsLocal(name) {
		return fmt.Errorf("name %q %w", h.Name, ErrEscapes)
	}
	if err := makeParents(root, name); err != nil {
		return err
	}
	switch h.Typeflag {
	case tar.TypeDir:
		return root.MkdirAll(name, 0o755)
	case tar.TypeSymlink:
		if err := StaysInside(filepath.ToSlash(name), h.Linkname); err != nil {
			return err
		}
		return root.Symlink(h.Linkname, name)
	case tar.TypeReg:
		return extractFile(root, r, name, fs.FileMode(h.Mode), h.Size)
	}
	return fmt.Errorf("%s has tar type %q: %w", h.Name, h.Typeflag, ErrUnsupported)
}

// makeParents makes the folders above name. A symlink among them is refused: Pack writes
// none, and what is written below one is not where its name says.
func makeParents(root *os.Root, name string) error {
	parent := filepath.Dir(name)
	if parent == "." {
		return nil
	}
	if err := root.MkdirAll(parent, 0o755); err != nil {
		return err
	}
	for p := parent; p != "."; p = filepath.Dir(p) {
		info, err := root.Lstat(p)
		if err != nil {
			return err
		}
		if !info.IsDir() {
			return fmt.Errorf("name %q is below the symlink %q: %w", name, p, ErrEscapes)
		}
	}
	return nil
}

func extractFile(root *os.Root, r io.Reader, name string, mode fs.FileMode, size int64) error {
	perm := fs.FileMode(0o644)
	if mode&0o100 != 0 {
		perm = 0o755
	}
	// O_EXCL: a second entry of the same name is not a way to write through a symlink.
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return err
	}
	_, err = io.CopyN(f, r, size)
	return errors.Join(err, f.Close())
}

// limited is io.LimitReader with an error of its own, so that a bomb is told from an end.
type limited struct {
	r    io.Reader
	left int64
}

func (l *limited) Read(p []byte) (int, error) {
	if l.left <= 0 {
		return 0, ErrTooLarge
	}
	if int64(len(p)) > l.left {
		p = p[:l.left]
	}
	n, err := l.r.Read(p)
	l.left -= int64(n)
	return n, err
}
