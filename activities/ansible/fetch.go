package ansible

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"

	"burrow.dev/burrow/internal/blob"
	"burrow.dev/burrow/internal/bundle"
	"burrow.dev/burrow/internal/errs"
)

// fetch unpacks the bundle with a digest into dir, and is content only when the bytes
// were those of the digest.
func (a *Activities) fetch(ctx context.Context, owner, digest, dir string) error {
	const action, again = "fetch playbook bundle", "apply again, which uploads it"
	key, err := blob.BundleKey(digest)
	if err != nil {
		return errs.NewPermanent(owner, action, errs.Reason("%q is not a digest", digest), again)
	}
	r, err := a.o.Blobs.Get(ctx, key)
	if errors.Is(err, errs.ErrNotFound) {
		return errs.NewPermanent(owner, action, fmt.Errorf("%s is not in the store: %w", digest, errs.ErrNotFound), again)
	}
	if err != nil {
		return errs.NewTransient(owner, action, err)
	}
	defer r.Close()
	sum := sha256.New()
	// The end of the archive may come before the end of the blob; both count.
	in := io.TeeReader(io.LimitReader(r, 2*bundle.MaxBytes), sum)
	unpackErr := bundle.Unpack(in, dir)
	if _, err := io.Copy(io.Discard, in); err != nil && !errors.Is(err, errs.ErrInvalid) {
		return errs.NewTransient(owner, action, err)
	}
	if got := "sha256:" + hex.EncodeToString(sum.Sum(nil)); got != digest {
		return errs.NewPermanent(owner, action, fmt.Errorf("the store's copy of %s is damaged: %w", digest, errs.ErrInvalid), again)
	}
	return unpackErr
}
