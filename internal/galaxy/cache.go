package galaxy

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// unfinished and discarded begin the names of what is not, or no longer, in the cache.
	unfinished = ".new-"
	discarded  = ".old-"
	// keepFor is how long what no run has used stays.
	keepFor = 30 * 24 * time.Hour
)

// Cache keeps installed roles and collections by key.
type Cache struct {
	Dir string
	// GID is the group that may read it: that of the user who runs playbooks.
	GID int
}

// Open gives the folder with roles/ and collections/ of a key, if it is there, and notes its use.
func (c Cache) Open(key string) (dir string, ok bool) {
	dir = filepath.Join(c.Dir, key)
	info, err := os.Lstat(dir)
	if err != nil || !info.IsDir() {
		return "", false
	}
	now := time.Now()
	_ = os.Chtimes(dir, now, now) // it only stays longer for it
	return dir, true
}

// Publish copies what the user owner has installed below the folder from, which nothing
// writes to any more, and gives where it is. It is there as a whole or not at all,
// also after a crash. ErrUnsafe names what no role or collection has.
func (c Cache) Publish(key, from string, owner int) (dir string, err error) {
	if err := c.make(); err != nil {
		return "", err
	}
	fresh, err := os.MkdirTemp(c.Dir, unfinished)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(fresh)) }()
	if err := copyTree(from, fresh, owner); err != nil {
		return "", err
	}
	if err := os.Chmod(fresh, 0o755); err != nil {
		return "", err
	}
	if err := syncAll(fresh); err != nil {
		return "", err
	}
	dir = filepath.Join(c.Dir, key)
	if err := os.Rename(fresh, dir); err != nil {
		if _, ok := c.Open(key); ok { // another worker's, of the same
			return dir, nil
		}
		return "", err
	}
	_ = c.prune(time.Now()) // what stays is looked at the next time
	return dir, nil
}

// Clean removes what a killed worker left unfinished. For the start of a worker.
func (c Cache) Clean() error {
	return c.each(func(e fs.DirEntry) error {
		if strings.HasPrefix(e.Name(), unfinished) || strings.HasPrefix(e.Name(), discarded) {
			return os.RemoveAll(filepath.Join(c.Dir, e.Name()))
		}
		return nil
	})
}

// make makes the cache's folder, for the group alone.
func (c Cache) make() error {
	if err := os.MkdirAll(c.Dir, 0o750); err != nil {
		return err
	}
	if err := os.Chmod(c.Dir, 0o750); err != nil { // whatever the umask
		return err
	}
	return os.Chown(c.Dir, os.Geteuid(), c.GID)
}

// prune removes what no run has used for long: no run takes that long.
func (c Cache) prune(now time.Time) error {
	return c.each(func(e fs.DirEntry) error {
		info, err := e.Info()
		if err != nil || strings.HasPrefix(e.Name(), ".") || now.Sub(info.ModTime()) < keepFor {
			return nil
		}
		old := filepath.Join(c.Dir, discarded+e.Name())
		if err := os.Rename(filepath.Join(c.Dir, e.Name()), old); err != nil {
			return err
		}
		return os.RemoveAll(old)
	})
}

func (c Cache) each(do func(fs.DirEntry) error) error {
	entries, err := os.ReadDir(c.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		err = errors.Join(err, do(e))
	}
	return err
}

// syncAll brings a file system to its disk, so that a name never stands there before what it names.
func syncAll(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := unix.Syncfs(int(f.Fd())); err != nil {
		return fmt.Errorf("write %s to disk: %w", dir, err)
	}
	return nil
}
