package etcdstate

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"burrow.dev/burrow/internal/errs"
)

// masterKeySize is that of an AES-256 key.
const masterKeySize = 32

// CreateMasterKey writes a new random master key, 0600, unless the file is there. It is
// complete or absent, also after a power cut.
func CreateMasterKey(path string) error {
	if _, err := os.Stat(path); err == nil {
		_, err := readMasterKey(path)
		return err
	}
	key := make([]byte, masterKeySize)
	if _, err := rand.Read(key); err != nil {
		return errs.NewTransient(path, "make master key", err)
	}
	part, err := os.CreateTemp(filepath.Dir(path), ".master-key-*") // 0600
	if err != nil {
		return errs.NewPermanent(path, "make master key", err, "check the data directory")
	}
	defer os.Remove(part.Name())
	_, err = part.Write(key)
	err = errors.Join(err, part.Sync(), part.Close())
	if err != nil {
		return errs.NewPermanent(path, "write master key", err, "check the data directory")
	}
	// A link never replaces a key that somebody else wrote meanwhile.
	if err := os.Link(part.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return errs.NewPermanent(path, "write master key", err, "check the data directory")
	}
	return nil
}

func readMasterKey(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, errs.NewPermanent(path, "read master key", err, "restore it from where the other workers have it; without it their secrets cannot be read")
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, errs.NewPermanent(path, "read master key", fmt.Errorf("others may read it (mode %04o)", info.Mode().Perm()), "chmod 600 "+path)
	}
	key, err := os.ReadFile(path)
	if err != nil {
		return nil, errs.NewPermanent(path, "read master key", err, "check its owner")
	}
	if len(key) != masterKeySize {
		return nil, errs.NewPermanent(path, "read master key", fmt.Errorf("it has %d bytes, not %d", len(key), masterKeySize), "restore it from a backup")
	}
	return key, nil
}
