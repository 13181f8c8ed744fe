package keyring

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"burrow.dev/burrow/internal/errs"
)

// KeySize is that of an AES-256 key, in bytes.
const KeySize = 32

// Options say where the keys are: in a file and its siblings, or in what a command prints.
type Options struct {
	// File holds 32 bytes, mode 0600; rotations put more keys beside it.
	File string
	// Command is a program and its arguments; it excludes File.
	Command []string
	// Log gets the names of files that are ignored; nil means slog.Default().
	Log *slog.Logger
}

// source is where keys come from.
type source interface {
	// load gives all keys, the first one first.
	load(ctx context.Context) ([][]byte, error)
	// make adds a new key and gives it with the place where it is.
	make() (key []byte, place string, err error)
	// lookEvery is how often it may be asked again without a reason.
	lookEvery() time.Duration
	// place names where a key with this id is or would be, for people.
	place(id string) string
}

// Ring is the master keys of a worker. Safe for concurrent use.
type Ring struct {
	source source
	// reading holds a token while somebody reads the keys: others who need them wait for
	// what that finds, rather than start the command beside it.
	reading chan struct{}

	mu     sync.RWMutex
	keys   map[string]cipher.AEAD
	first  string
	looked time.Time
	failed error // of the latest look
}

func newRing(s source) *Ring { return &Ring{source: s, reading: make(chan struct{}, 1)} }

// Open reads the keys. No key, one that others may read, and a command that fails are errors.
func Open(ctx context.Context, o Options) (*Ring, error) {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.File != "" && len(o.Command) > 0 {
		return nil, errs.NewPermanent("master key", "find", errs.Reason("%w: masterKeyFile and masterKeyCommand exclude each other", errs.ErrInvalid), "keep one of them in worker.json")
	}
	var from source = &files{first: o.File, log: o.Log, told: map[string]bool{}}
	if len(o.Command) > 0 {
		from = command{o.Command, commandTimeout}
	}
	r := newRing(from)
	return r, r.Reload(ctx)
}

// ID names a key without giving it away: 16 hex digits of a hash of it.
func ID(key []byte) string {
	sum := sha256.Sum256(append([]byte("burrow master key id\x00"), key...))
	return hex.EncodeToString(sum[:8])
}

// Reload reads the keys again: what was added is had from now on, what was removed is not.
// When it fails, the ring keeps what it has.
func (r *Ring) Reload(ctx context.Context) error {
	return r.alone(ctx, func() error { return r.read(ctx) })
}

// Look is Reload, unless nothing is missing, or that was done a moment ago: then it gives the
// error of that. wanted is the id of a key that somebody uses, or "".
func (r *Ring) Look(ctx context.Context, wanted string) error {
	if done, err := r.lookedFor(wanted); done {
		return err
	}
	return r.alone(ctx, func() error {
		if done, err := r.lookedFor(wanted); done { // by whom we waited for
			return err
		}
		return r.read(ctx)
	})
}

// lookedFor reports whether reading the keys again would be of no use, and the error if the
// latest reading failed.
func (r *Ring) lookedFor(wanted string) (bool, error) {
	every := r.source.lookEvery()
	r.mu.RLock()
	defer r.mu.RUnlock()
	if _, have := r.keys[wanted]; every > 0 && (wanted == "" || have) {
		return true, nil
	}
	return time.Since(r.looked) < every, r.failed
}

// alone runs fn while nobody else reads the keys.
func (r *Ring) alone(ctx context.Context, fn func() error) error {
	select {
	case r.reading <- struct{}{}:
		defer func() { <-r.reading }()
		return fn()
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (r *Ring) read(ctx context.Context) error {
	keys, first, err := r.load(ctx)
	if ctx.Err() != nil {
		return ctx.Err() // says nothing about the keys
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.looked, r.failed = time.Now(), err
	if err == nil {
		r.keys, r.first = keys, first
	}
	return err
}

func (r *Ring) load(ctx context.Context) (keys map[string]cipher.AEAD, first string, err error) {
	all, err := r.source.load(ctx)
	if err != nil {
		return nil, "", err
	}
	keys = map[string]cipher.AEAD{}
	for _, key := range all {
		if keys[ID(key)], err = aead(key); err != nil {
			return nil, "", err
		}
	}
	return keys, ID(all[0]), nil
}

// Key gives what encrypts and decrypts under a key.
func (r *Ring) Key(id string) (cipher.AEAD, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	k, ok := r.keys[id]
	return k, ok
}

// First is the id of the key that an installation begins with.
func (r *Ring) First() string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.first
}

// IDs lists the ids of all keys, sorted.
func (r *Ring) IDs() []string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return slices.Sorted(maps.Keys(r.keys))
}

// Make adds a new key, on disk before it returns, and gives its id and its file.
func (r *Ring) Make(ctx context.Context) (id, place string, err error) {
	key, place, err := r.source.make()
	if err != nil {
		return "", "", err
	}
	return ID(key), place, r.Reload(ctx)
}

// Place names where the key with an id is, or where a worker looks for it.
func (r *Ring) Place(id string) string {
	if r.First() == id {
		return r.source.place("")
	}
	return r.source.place(id)
}

func aead(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, errs.NewPermanent("master key", "use", err, "")
	}
	sealer, err := cipher.NewGCM(block)
	if err != nil {
		return nil, errs.NewPermanent("master key", "use", err, "")
	}
	return sealer, nil
}
