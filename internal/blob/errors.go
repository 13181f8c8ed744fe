package blob

import (
	"errors"
	"fmt"
	"syscall"

	"gocloud.dev/gcerrors"

	"burrow.dev/burrow/internal/errs"
)

// translate gives a driver's error its class and name; nil stays nil, and an error that
// has them already passes.
func translate(what, key, action string, err error) error {
	if err == nil {
		return nil
	}
	if own := (*errs.Error)(nil); errors.As(err, &own) {
		return err
	}
	object := what + " " + key
	switch {
	case gcerrors.Code(err) == gcerrors.NotFound:
		return errs.NewPermanent(object, action, errs.ErrNotFound, "")
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return errs.NewOperator(object, action, fmt.Errorf("%w: %w", errs.ErrNoSpace, err), "free space in the data directory")
	case errors.Is(err, syscall.EACCES), errors.Is(err, syscall.EPERM), errors.Is(err, syscall.EROFS):
		return errs.NewOperator(object, action, err, "make the blob directory writable for the worker")
	}
	return errs.NewTransient(object, action, err)
}
