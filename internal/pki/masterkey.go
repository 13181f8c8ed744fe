package pki

import (
	"crypto/rand"
	"os"

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
	return writeFile(file, key, 0o600)
}
