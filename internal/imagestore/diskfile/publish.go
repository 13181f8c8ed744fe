package diskfile

import (
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Publish gives a complete file its final name: on disk for good before anybody sees it
// there, and replacing what had the name.
func Publish(part, final string) error {
	if err := Sync(part); err != nil {
		return err
	}
	if err := os.Rename(part, final); err != nil {
		return err
	}
	return Sync(filepath.Dir(final))
}

// Sync makes the content of a file or folder survive a power cut.
func Sync(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// Free is the number of bytes that may still be written below path.
func Free(path string) (int64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		return 0, &os.PathError{Op: "statfs", Path: path, Err: err}
	}
	return int64(s.Bavail) * s.Bsize, nil
}
