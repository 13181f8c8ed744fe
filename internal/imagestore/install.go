package imagestore

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/imagestore/diskfile"
	"burrow.dev/burrow/internal/imagestore/tool"
)

const (
	// partPrefix begins the names of unfinished files in a pool's folder.
	partPrefix = ".burrow-part-"
	volumeMode = 0o644 // QEMU's user reads base images, whoever owns them
)

// From is a file on the host that is to become an image.
type From struct {
	Path string
	// Owned: the file may be moved instead of copied.
	Owned bool
	// Checksum (SHA-256 or SHA-512) that the file must have as it is; "" when it is known to be right.
	Checksum string
	// Want is the SHA-256 that the stored image must have; "" for any.
	Want string
}

// Installed is a verified image in a pool's folder.
type Installed struct {
	Volume       string `json:"volume"`
	Path         string `json:"path"`
	Format       string `json:"format"` // always "qcow2"
	SHA256       string `json:"sha256"` // of the file as stored, hex
	SizeBytes    int64  `json:"sizeBytes"`
	VirtualBytes int64  `json:"virtualBytes"`
}

// VirtualGiB is the virtual size, rounded up.
func (i Installed) VirtualGiB() int { return int((i.VirtualBytes + 1<<30 - 1) >> 30) }

// VolumeName names the image of a digest in every pool.
func VolumeName(sum string) string { return "img-" + sum[:min(16, len(sum))] + ".qcow2" }

// Install makes a file an image in a pool's folder: expanded (gz, bz2, xz, zst), inspected,
// converted to qcow2 if it is raw, digested, and named by its digest. An image that is
// there already stays as it is. One install at a time works in a folder.
// Errors: Permanent for what is no image or not the wanted one; Operator for a full disk.
func (s *Store) Install(ctx context.Context, object string, from From, poolDir string, report Report) (Installed, error) {
	unlock, err := s.lockPool(ctx, poolDir)
	if err != nil {
		return Installed{}, diskError(object, "store", err)
	}
	defer unlock()
	if err := removeParts(poolDir); err != nil {
		return Installed{}, diskError(object, "store", err)
	}
	img, err := s.install(ctx, object, from, poolDir, report)
	return img, errors.Join(diskError(object, "store", err), diskError(object, "store", removeParts(poolDir)))
}

func (s *Store) install(ctx context.Context, object string, from From, poolDir string, report Report) (Installed, error) {
	part, err := s.bring(ctx, object, from, poolDir, report)
	if err != nil {
		return Installed{}, err
	}
	report("verify", 0, 0)
	found, err := inspect(ctx, object, part)
	if err != nil {
		return Installed{}, err
	}
	if found.format == "raw" {
		report("convert", 0, 0)
		if part, err = convert(ctx, part, poolDir); err != nil {
			return Installed{}, err
		}
	}
	if err := os.Chmod(part, volumeMode); err != nil {
		return Installed{}, err
	}
	sum, size, err := diskfile.Digest(ctx, part, func(done int64) { report("verify", done, 0) })
	if err != nil {
		return Installed{}, err
	}
	if from.Want != "" && from.Want != sum {
		return Installed{}, errs.NewPermanent(object, "store",
			fmt.Errorf("%w: the source gives an image with SHA-256 %s, the record says %s", errs.ErrInvalid, sum, from.Want),
			"the source has changed: delete the image and import it again, or import it under another name")
	}
	img := Installed{
		Volume: VolumeName(sum), Path: filepath.Join(poolDir, VolumeName(sum)), Format: "qcow2",
		SHA256: sum, SizeBytes: size, VirtualBytes: found.virtualBytes,
	}
	return img, s.settle(ctx, object, part, img, poolDir)
}

// settle gives a verified part its name, unless the same image has it already.
func (s *Store) settle(ctx context.Context, object, part string, img Installed, poolDir string) error {
	switch _, there, err := s.verified(ctx, object, poolDir, img.SHA256); {
	case err != nil:
		return err
	case there:
		return nil
	}
	if err := diskfile.Publish(part, img.Path); err != nil {
		return err
	}
	return s.mark(poolDir, img)
}

// bring makes from's content a part file in the pool's folder.
func (s *Store) bring(ctx context.Context, object string, from From, poolDir string, report Report) (string, error) {
	src, err := os.Open(from.Path)
	if err != nil {
		return "", missingFile(object, err)
	}
	defer src.Close()
	info, err := src.Stat()
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() {
		return "", errs.NewPermanent(object, "import", fmt.Errorf("%w: %s is not a regular file", errs.ErrInvalid, from.Path), "give a disk image file")
	}
	if from.Checksum != "" {
		if err := compare(ctx, object, src, from, info.Size(), report); err != nil {
			return "", err
		}
	}
	method, err := compression(src)
	if err != nil {
		return "", err
	}
	part, err := newPoolPart(poolDir)
	if err != nil {
		return "", err
	}
	if from.Owned && method == plain && os.Rename(from.Path, part) == nil {
		return part, nil
	}
	if err := checkRoom(poolDir, info.Size()); err != nil {
		return "", err
	}
	return part, expand(ctx, object, method, src, info.Size(), part, report)
}

func missingFile(object string, err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return errs.NewPermanent(object, "import", errors.Join(errs.ErrNotFound, err), "give the path of a file on the host that imports it")
	}
	return err
}

func compare(ctx context.Context, object string, src *os.File, from From, size int64, report Report) error {
	want, err := ParseChecksum(from.Checksum)
	if err != nil {
		return errs.NewPermanent(object, "import", err, "give 64 or 128 hex digits")
	}
	sum := want.hasher()
	if _, err := diskfile.Copy(ctx, sum, src, func(done int64) { report("verify", done, size) }); err != nil {
		return err
	}
	if !want.matches(sum) {
		return errs.NewPermanent(object, "import", fmt.Errorf("%w: checksum of %s is %x, expected %s", errs.ErrInvalid, from.Path, sum.Sum(nil), want), "check the file and the checksum")
	}
	return nil
}

// convert makes a raw part a qcow2 part.
func convert(ctx context.Context, raw, poolDir string) (string, error) {
	part, err := newPoolPart(poolDir)
	if err != nil {
		return "", err
	}
	err = tool.Run(ctx, tool.Command{Name: "qemu-img", Args: []string{"convert", "-q", "-f", "raw", "-O", "qcow2", raw, part}})
	switch {
	case tool.Said(err, "No space left"):
		return "", &os.PathError{Op: "convert", Path: part, Err: syscall.ENOSPC}
	case err != nil:
		return "", err
	}
	return part, os.Remove(raw)
}

func newPoolPart(poolDir string) (string, error) {
	f, err := os.CreateTemp(poolDir, partPrefix)
	if err != nil {
		return "", err
	}
	return f.Name(), f.Close()
}

// removeParts removes what killed installs left. The caller holds the pool's lock.
func removeParts(poolDir string) error {
	parts, err := filepath.Glob(filepath.Join(poolDir, partPrefix+"*"))
	for _, p := range parts {
		err = errors.Join(err, os.Remove(p))
	}
	return err
}

func (s *Store) lockPool(ctx context.Context, poolDir string) (func(), error) {
	if err := os.MkdirAll(s.locksDir(), 0o700); err != nil {
		return nil, err
	}
	return diskfile.Lock(ctx, filepath.Join(s.locksDir(), "pool-"+poolKey(poolDir)))
}

// poolKey names a pool's folder in file names.
func poolKey(poolDir string) string {
	sum := sha256.Sum256([]byte(filepath.Clean(poolDir)))
	return hex.EncodeToString(sum[:6])
}
