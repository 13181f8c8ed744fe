package etcdstate

import (
	"fmt"
	"os"

	"burrow.dev/burrow/internal/errs"
)

// masterKeySize is that of an AES-256 key.
const masterKeySize = 32

// readMasterKey reads the file that internal/pki makes. It refuses one that others may read.
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
