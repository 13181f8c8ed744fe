package cli

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"strings"

	"burrow.dev/burrow/internal/config"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/installation"
	"burrow.dev/burrow/internal/keyring"
)

// masterKeyPlace says where the master keys of a worker come from.
func masterKeyPlace(cfg config.Worker) string {
	if len(cfg.MasterKeyCommand) > 0 {
		return "from " + strings.Join(cfg.MasterKeyCommand, " ")
	}
	return cfg.MasterKeyFile
}

// masterKeyIDs gives the ids of the master keys that a worker has; none is no error.
func masterKeyIDs(ctx context.Context, cfg config.Worker) ([]string, error) {
	ring, err := keyring.Open(ctx, keyring.Options{File: cfg.MasterKeyFile, Command: cfg.MasterKeyCommand, Log: slog.New(slog.DiscardHandler)})
	if errors.Is(err, fs.ErrNotExist) && len(cfg.MasterKeyCommand) == 0 {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return ring.IDs(), nil
}

// givenKey reads the copy of a master key that --master-key names; nil when it names none.
func (r *restoration) givenKey() (key []byte, err error) {
	path := r.String("master-key")
	if path == "" {
		return nil, nil
	}
	key, err = os.ReadFile(path)
	if err != nil {
		return nil, errs.NewPermanent("master key "+path, "read", err, "correct --master-key")
	}
	if len(key) != keyring.KeySize {
		return nil, errs.NewPermanent("master key "+path, "read", errs.Reason("%w: it has %d bytes, not %d", errs.ErrInvalid, len(key), keyring.KeySize), "correct --master-key")
	}
	return key, nil
}

// checkKey refuses a backup with secrets that no master key at hand decrypts.
func (r *restoration) checkKey(cfg config.Worker) error {
	given, err := r.givenKey()
	if err != nil {
		return err
	}
	ids, err := masterKeyIDs(r.Context.Context, cfg)
	if err != nil {
		return err
	}
	place := masterKeyPlace(cfg)
	if given != nil {
		ids, place = append(ids, keyring.ID(given)), r.String("master-key")
	}
	return r.contents.CheckMasterKeys(ids, place)
}

// bringKey makes the given master key one of the worker's, and no other is lost for it.
func (r *restoration) bringKey(cfg config.Worker) error {
	if err := r.checkKey(cfg); err != nil {
		return err
	}
	given, err := r.givenKey()
	if err != nil || given == nil {
		return err
	}
	if len(cfg.MasterKeyCommand) > 0 {
		return errs.NewPermanent("--master-key", "use", errs.Reason("%w: this installation's masterKeyCommand gives the keys", errs.ErrInvalid), "let it give this one too")
	}
	path, err := installation.AddMasterKey(cfg.MasterKeyFile, keyring.ID(given), given)
	if err == nil {
		r.say("  master key: %s", path)
	}
	return err
}
