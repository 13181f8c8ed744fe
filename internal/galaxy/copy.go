package galaxy

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"burrow.dev/burrow/internal/bundle"
)

// Bounds of what one requirements file installs: every run of a host reads it, and it stays.
const (
	maxInstalled = 1 << 30
	maxEntries   = 200_000
)

// ErrUnsafe: something was installed that no role or collection has, or too much.
var ErrUnsafe = errors.New("what was installed cannot be kept")

// copyTree copies files, folders, and symlinks that stay inside, of which the user owner has
// all: a hard link to somebody else's file is none of theirs. Nothing of the source is
// trusted, and the copies are this process's own.
func copyTree(from, to string, owner int) error {
	source, err := os.OpenRoot(from)
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := os.OpenRoot(to)
	if err != nil {
		return err
	}
	defer target.Close()
	c := &copying{from: source, to: target, owner: owner, room: maxInstalled}
	return fs.WalkDir(source.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || name == "." {
			return err
		}
		if c.entries++; c.entries > maxEntries {
			return fmt.Errorf("%w: more than %d files", ErrUnsafe, maxEntries)
		}
		return c.entry(name, d)
	})
}

type copying struct {
	from, to *os.Root
	owner    int
	entries  int
	room     int64 // bytes that are left
}

func (c *copying) entry(name string, d fs.DirEntry) error {
	switch {
	case d.IsDir():
		if err := c.to.Mkdir(name, 0o755); err != nil {
			return err
		}
		return c.to.Chmod(name, 0o755) // whatever the umask
	case d.Type() == fs.ModeSymlink:
		link, err := c.from.Readlink(name)
		if err != nil {
			return err
		}
		if err := bundle.StaysInside(name, link); err != nil {
			return fmt.Errorf("%w: %w", ErrUnsafe, err)
		}
		return c.to.Symlink(link, name)
	case d.Type().IsRegular():
		return c.file(name)
	}
	return fmt.Errorf("%w: %s is neither file nor folder", ErrUnsafe, name)
}

func (c *copying) file(name string) (err error) {
	// It may have become a pipe meanwhile, which must not be waited for.
	in, err := c.from.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.Mode().IsRegular() || int(stat.Uid) != c.owner {
		return fmt.Errorf("%w: %s is not a file of the user who installed it", ErrUnsafe, name)
	}
	mode := fs.FileMode(0o644)
	if info.Mode()&0o100 != 0 {
		mode = 0o755
	}
	out, err := c.to.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	if err := out.Chmod(mode); err != nil { // whatever the umask
		return err
	}
	n, err := io.Copy(out, io.LimitReader(in, c.room+1))
	if c.room -= n; err == nil && c.room < 0 {
		return fmt.Errorf("%w: more than %d MiB", ErrUnsafe, maxInstalled>>20)
	}
	return err
}
