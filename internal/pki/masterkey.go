package pki

import (
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"

	"burrow.dev/burrow/internal/errs"
)

// masterKeyBytes is the key length of AES-256.
const masterKeyBytes = 32

// EnsureMasterKey makes the file of 32 random bytes that encrypts secrets in etcd,
// or checks the one that is there. It never replaces one: what it encrypted would be lost.
func EnsureMasterKey(file string) error {
	object := "master key " + file
	info, err := os.Stat(file)
	switch {
	case err == nil && info.Size() != masterKeyBytes:
		return errs.NewOperator(object, "check", errs.Reason("has %d bytes, want %d", info.Size(), masterKeyBytes), "restore it from a backup: secrets in etcd are encrypted with it")
	case err == nil && info.Mode().Perm()&0o077 != 0:
		return errs.NewOperator(object, "check", errs.Reason("mode %04o lets others read it", info.Mode().Perm()), "chmod 600 "+file)
	case err == nil:
		return nil
	case !os.IsNotExist(err):
		return errs.NewOperator(object, "check", err, "run as root")
	}
	key := make([]byte, masterKeyBytes)
	_, _ = rand.Read(key) // ends the process rather than give fewer bytes
	return WriteMasterKey(file, key)
}

// WriteMasterKey puts a key into a file of mode 0600, on disk before it returns: what is
// encrypted with it afterwards can be read again after a power cut.
func WriteMasterKey(file string, key []byte) error {
	if err := writeFile(file, key, 0o600); err != nil {
		return err
	}
	folder, err := os.Open(filepath.Dir(file))
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}
