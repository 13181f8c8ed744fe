package bundle

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"

	"burrow.dev/burrow/internal/errs"
)

// bigFilesNamed is how many files a "too large" error names.
const bigFilesNamed = 5

// item is one thing that goes into the archive.
type item struct {
	name string // slash-separated, relative
	mode fs.FileMode
	size int64
	link string
}

// Pack writes the folder dir as a tar.zst to w and returns the digest ("sha256:<hex>"
// of the bytes written) and their number. Left out is what .burrowignore names, and
// version control. Owners and times do not matter; of the permissions only "executable" does.
//
// Errors are Permanent: ErrTooLarge names the biggest files, ErrEscapes the symlink,
// ErrUnsupported the device, socket or pipe.
func Pack(dir string, w io.Writer) (digest string, size int64, err error) {
	items, err := collect(dir)
	if err != nil {
		return "", 0, refuse(dir, "pack", err)
	}
	sum := sha256.New()
	count := &counter{w: io.MultiWriter(w, sum)}
	// One encoder thread: the bytes must not depend on the machine's number of CPUs.
	enc, err := zstd.NewWriter(count, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedDefault))
	if err != nil {
		return "", 0, refuse(dir, "pack", err)
	}
	tw := tar.NewWriter(enc)
	for _, it := range items {
		if err := add(tw, dir, it); err != nil {
			return "", 0, refuse(dir, "pack", err)
		}
	}
	if err := errors.Join(tw.Close(), enc.Close()); err != nil {
		return "", 0, refuse(dir, "pack", err)
	}
	return "sha256:" + hex.EncodeToString(sum.Sum(nil)), count.n, nil
}

// collect lists what goes in, sorted by name, and checks all of it before a byte is written.
func collect(dir string) ([]item, error) {
	text, err := readIgnore(dir)
	if err != nil {
		return nil, err
	}
	ig := parseIgnore(text)
	var items []item
	var total int64
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		name := filepath.ToSlash(rel)
		if ig.skips(name, d.IsDir()) {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		it, err := inspect(dir, name, d)
		if err != nil {
			return err
		}
		items = append(items, it)
		total += it.size
		if len(items) > MaxEntries {
			// Somebody's home folder need not be walked to its end.
			return fmt.Errorf("more than %d entries: %w", MaxEntries, ErrTooLarge)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if total > MaxBytes {
		return nil, tooLarge(items, total)
	}
	sort.Slice(items, func(i, j int) bool { return items[i].name < items[j].name })
	return items, nil
}

// inspect takes one entry, or says why it cannot go in.
func inspect(dir, name string, d fs.DirEntry) (item, error) {
	info, err := d.Info()
	if err != nil {
		return item{}, err
	}
	switch {
	case info.IsDir():
		return item{name: name + "/", mode: 0o755 | fs.ModeDir}, nil
	case info.Mode().IsRegular():
		mode := fs.FileMode(0o644)
		if info.Mode()&0o100 != 0 {
			mode = 0o755
		}
		return item{name: name, mode: mode, size: info.Size()}, nil
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := os.Readlink(filepath.Join(dir, filepath.FromSlash(name)))
		if err != nil {
			return item{}, err
		}
		if err := StaysInside(name, target); err != nil {
			return item{}, err
		}
		return item{name: name, mode: 0o777 | fs.ModeSymlink, link: filepath.ToSlash(target)}, nil
	}
	return item{}, fmt.Errorf("%s is a %s: %w", name, kind(info.Mode()), ErrUnsupported)
}

// StaysInside refuses (ErrEscapes) a symlink at name (relative) whose target is absolute or climbs
// out. ".." may stand at the front only: behind another symlink it would not mean what
// it says ("b/.." with b → "." is the folder above).
func StaysInside(name, target string) error {
	joined := filepath.Join(filepath.Dir(filepath.FromSlash(name)), filepath.FromSlash(target))
	down := target
	for strings.HasPrefix(down, "../") {
		down = down[len("../"):]
	}
	climbsLater := down != ".." && slices.Contains(strings.Split(down, "/"), "..")
	if target == "" || strings.HasPrefix(target, "/") || climbsLater || !filepath.IsLocal(joined) {
		return fmt.Errorf("symlink %s → %s %w", name, target, ErrEscapes)
	}
	return nil
}

func kind(mode fs.FileMode) string {
	switch {
	case mode&fs.ModeNamedPipe != 0:
		return "named pipe"
	case mode&fs.ModeSocket != 0:
		return "socket"
	case mode&fs.ModeDevice != 0:
		return "device"
	}
	return "special file"
}

func tooLarge(items []item, total int64) error {
	sort.SliceStable(items, func(i, j int) bool { return items[i].size > items[j].size })
	var big []string
	for _, it := range items[:min(bigFilesNamed, len(items))] {
		if it.size > 0 {
			big = append(big, fmt.Sprintf("%s (%s)", it.name, mib(it.size)))
		}
	}
	return fmt.Errorf("%s, at most %s are allowed; the biggest: %s: %w",
		mib(total), mib(MaxBytes), strings.Join(big, ", "), ErrTooLarge)
}

func mib(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }

// add writes one entry. A file that changed its size since it was looked at is an error.
func add(tw *tar.Writer, dir string, it item) error {
	h := &tar.Header{
		Name: it.name, Mode: int64(it.mode.Perm()), Size: it.size, Linkname: it.link,
		Typeflag: tar.TypeReg, Format: tar.FormatPAX, ModTime: time.Unix(0, 0),
	}
	switch {
	case it.mode.IsDir():
		h.Typeflag = tar.TypeDir
	case it.mode&fs.ModeSymlink != 0:
		h.Typeflag = tar.TypeSymlink
	}
	if err := tw.WriteHeader(h); err != nil {
		return fmt.Errorf("%s: %w", it.name, err)
	}
	if h.Typeflag != tar.TypeReg {
		return nil
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	f, err := root.Open(filepath.FromSlash(it.name))
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := io.CopyN(tw, f, it.size); err != nil {
		return fmt.Errorf("%s changed while it was read: %w", it.name, err)
	}
	return nil
}

// refuse gives an error its object and class.
func refuse(object, action string, err error) error {
	next := ""
	switch {
	case errors.Is(err, ErrTooLarge):
		next = "name what the playbook does not need in " + IgnoreFile
	case errors.Is(err, ErrEscapes):
		next = "replace the symlink by a copy, or name it in " + IgnoreFile
	case errors.Is(err, ErrUnsupported):
		next = "name it in " + IgnoreFile
	}
	return errs.NewPermanent("playbook folder "+object, action, err, next)
}

// counter counts what goes through.
type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}
