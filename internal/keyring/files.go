package keyring

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"time"

	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/pki"
)

// keySuffix is what follows the first key's name in that of another: its id.
var keySuffix = regexp.MustCompile(`^\.[0-9a-f]{16}$`)

// files is a key in a file, and others beside it.
type files struct {
	first string
	log   *slog.Logger

	mu   sync.Mutex
	told map[string]bool // what was said of ignored files, to say it once
}

func (f *files) lookEvery() time.Duration { return 0 } // reading a folder costs nothing

func (f *files) place(id string) string {
	if id == "" {
		return f.first
	}
	return f.first + "." + id
}

func (f *files) load(context.Context) ([][]byte, error) {
	first, err := readKey(f.first)
	if err != nil {
		return nil, err
	}
	keys := [][]byte{first}
	siblings, err := filepath.Glob(escaped(f.first) + ".*")
	if err != nil {
		return nil, errs.NewPermanent(f.first, "look for more master keys", err, "")
	}
	for _, path := range siblings {
		suffix := path[len(f.first):]
		if !keySuffix.MatchString(suffix) {
			continue
		}
		key, err := readKey(path)
		if err == nil && "."+ID(key) != suffix {
			err = errs.Reason("%s: it holds another key than its name says", path)
		}
		if err != nil { // half copied, perhaps; the others must go on working
			f.tell(err.Error())
			continue
		}
		keys = append(keys, key)
	}
	return keys, nil
}

func (f *files) tell(problem string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.told[problem] {
		f.told[problem] = true
		f.log.Warn("a master key is ignored", slog.String("error", problem))
	}
}

func (f *files) make() ([]byte, string, error) {
	key := make([]byte, KeySize)
	_, _ = rand.Read(key) // ends the process rather than give fewer bytes
	path := f.place(ID(key))
	if err := pki.WriteMasterKey(path, key); err != nil {
		return nil, "", errs.NewOperator(path, "write master key", err, "make its folder writable for the worker, with room on the disk")
	}
	return key, path, nil
}

// readKey reads a file of one key. It refuses one that others may read.
func readKey(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, errs.NewPermanent(path, "read master key", err, "restore it from where the other workers have it; without it their secrets cannot be read")
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, errs.NewPermanent(path, "read master key", fmt.Errorf("others may read it (mode %04o)", info.Mode().Perm()), "chmod 600 "+path)
	}
	if info.Size() != KeySize {
		return nil, errs.NewPermanent(path, "read master key", fmt.Errorf("it has %d bytes, not %d", info.Size(), KeySize), "restore it from a backup")
	}
	key, err := os.ReadFile(path)
	if err != nil {
		return nil, errs.NewPermanent(path, "read master key", err, "check its owner")
	}
	if len(key) != KeySize {
		return nil, errs.NewPermanent(path, "read master key", fmt.Errorf("it has %d bytes, not %d", len(key), KeySize), "restore it from a backup")
	}
	return key, nil
}

// escaped keeps a path from being read as a pattern.
func escaped(path string) string {
	return regexp.MustCompile(`[*?\[\]\\]`).ReplaceAllString(path, `\$0`)
}
