package imagestore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/imagestore/diskfile"
)

// mark says that a file was verified, and what it looked like then. A file that looks
// otherwise is verified again.
type mark struct {
	Installed
	ModTime time.Time `json:"modTime"`
}

// Verified finds the image of a digest in a pool's folder. Marked before and unchanged
// since: no byte of it is read. Otherwise it is digested and inspected. A file of that
// name and another content is somebody else's, or damaged: Operator, and it is not touched.
func (s *Store) Verified(ctx context.Context, object, poolDir, sum string) (Installed, bool, error) {
	if img, ok := s.marked(poolDir, sum); ok {
		return img, true, nil
	}
	unlock, err := s.lockPool(ctx, poolDir)
	if err != nil {
		return Installed{}, false, diskError(object, "verify", err)
	}
	defer unlock()
	img, ok, err := s.verified(ctx, object, poolDir, sum)
	return img, ok, diskError(object, "verify", err)
}

// verified is Verified with the pool's lock held.
func (s *Store) verified(ctx context.Context, object, poolDir, sum string) (Installed, bool, error) {
	if img, ok := s.marked(poolDir, sum); ok {
		return img, true, nil
	}
	path := filepath.Join(poolDir, VolumeName(sum))
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Installed{}, false, nil
	case err != nil:
		return Installed{}, false, err
	}
	img := Installed{Volume: VolumeName(sum), Path: path, Format: "qcow2", SHA256: sum, SizeBytes: info.Size()}
	got := ""
	if info.Mode().IsRegular() {
		if got, _, err = diskfile.Digest(ctx, path, nil); err != nil {
			return Installed{}, false, err
		}
	}
	if got != sum {
		return Installed{}, false, errs.NewOperator(object, "verify",
			fmt.Errorf("%w: %s is not the image with SHA-256 %s", errs.ErrNotManaged, path, sum),
			"see what the file is, and move it away")
	}
	found, err := inspect(ctx, object, path)
	if err != nil {
		return Installed{}, false, err
	}
	img.VirtualBytes = found.virtualBytes
	return img, true, s.mark(poolDir, img)
}

// marked finds the image by its mark alone.
func (s *Store) marked(poolDir, sum string) (Installed, bool) {
	var m mark
	text, err := os.ReadFile(s.markFile(poolDir, VolumeName(sum)))
	if err != nil || json.Unmarshal(text, &m) != nil || m.SHA256 != sum {
		return Installed{}, false
	}
	path := filepath.Join(poolDir, VolumeName(sum))
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() != m.SizeBytes || !info.ModTime().Equal(m.ModTime) {
		return Installed{}, false
	}
	m.Path = path
	return m.Installed, true
}

func (s *Store) mark(poolDir string, img Installed) error {
	info, err := os.Stat(img.Path)
	if err != nil {
		return err
	}
	text, err := json.Marshal(mark{Installed: img, ModTime: info.ModTime()})
	if err != nil {
		return err
	}
	if err := os.MkdirAll(s.marksDir(), 0o700); err != nil {
		return err
	}
	file := s.markFile(poolDir, img.Volume)
	if err := os.WriteFile(file+".new", text, 0o600); err != nil {
		return err
	}
	return diskfile.Publish(file+".new", file)
}

func (s *Store) markFile(poolDir, volume string) string {
	return filepath.Join(s.marksDir(), poolKey(poolDir)+"-"+volume+".json")
}

// Forget takes the mark of a removed image away.
func (s *Store) Forget(poolDir, sum string) error {
	err := os.Remove(s.markFile(poolDir, VolumeName(sum)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Dependents names the files of a pool's folder whose backing file is the image.
func (s *Store) Dependents(poolDir, sum string) ([]string, error) {
	entries, err := os.ReadDir(poolDir)
	if err != nil {
		return nil, err
	}
	image := filepath.Join(poolDir, VolumeName(sum))
	var users []string
	for _, e := range entries {
		if !e.Type().IsRegular() {
			continue
		}
		f, err := os.Open(filepath.Join(poolDir, e.Name()))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		} else if err != nil {
			return nil, err
		}
		h, ok, err := ReadHeader(f)
		f.Close()
		if err == nil && ok && backingPath(poolDir, h.Backing) == image {
			users = append(users, e.Name())
		}
	}
	return users, nil
}

// backingPath resolves a backing file name as QEMU does: relative to the image's folder.
func backingPath(dir, name string) string {
	if name == "" || filepath.IsAbs(name) {
		return filepath.Clean(name)
	}
	return filepath.Join(dir, name)
}
