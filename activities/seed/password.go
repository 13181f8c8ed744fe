package seed

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"

	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
)

// saltLength is the longest that SHA-512 crypt uses.
const saltLength = 16

// rootPassword gives the crypt(3) hash for the seed: the one that was declared, or that of
// the secret that was named. Only here is a secret in clear, and only its hash goes on.
func (a *Activities) rootPassword(ctx context.Context, in WriteIn) (string, error) {
	declared := in.Auth.RootPassword
	name, secret := manifest.SecretName(declared)
	if !secret {
		if declared != "" && !manifest.IsCryptHash(declared) {
			return "", errs.NewPermanent(in.Server.Ref(), "set root password",
				errs.Reason("%w: it is not a crypt(3) hash", errs.ErrInvalid), "make one: openssl passwd -6")
		}
		return declared, nil
	}
	const action = "read root password"
	value, err := a.cfg.Passwords.Get(ctx, name)
	if errors.Is(err, errs.ErrNotFound) {
		return "", errs.NewPermanent(in.Server.Ref(), action, errs.Reason("%w: there is no secret %s", errs.ErrNotFound, name),
			"burrow secret set "+name+", then apply again")
	}
	if err != nil {
		return "", about(in.Server, action, err)
	}
	text := string(bytes.TrimSpace(value))
	if manifest.IsCryptHash(text) {
		return text, nil
	}
	hash, err := manifest.HashPassword(text, salt(in.Server.UID))
	if err != nil {
		return "", errs.NewPermanent(in.Server.Ref(), action, errs.Reason("secret %s: %w", name, err), "burrow secret set "+name+", then apply again")
	}
	return hash, nil
}

// salt is a server's own, the same each time: a retried activity writes the same seed. It is
// made of the uid alone, since a salt stands beside the hash and must not tell of the password.
func salt(uid string) string {
	sum := sha256.Sum256([]byte("burrow root password salt\x00" + uid))
	return hex.EncodeToString(sum[:])[:saltLength]
}
