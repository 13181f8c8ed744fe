package hostnet

import (
	"errors"
	"os"

	"burrow.dev/burrow/internal/errs"
)

// refusal classifies an error of this package, once: what is not ours is permanent,
// a program that is missing is the operator's, the rest is tried again.
func refusal(object, action string, err error) error {
	var classified *errs.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &classified):
		return err
	case errors.Is(err, errs.ErrNotManaged):
		return errs.NewPermanent(object, action, err, "remove or rename what stands in its place")
	case errors.Is(err, errs.ErrInvalid):
		return errs.NewPermanent(object, action, err, "")
	case isMissingProgram(err):
		return errs.NewOperator(object, action, err, "install the package on this host")
	case errors.Is(err, os.ErrPermission):
		return errs.NewOperator(object, action, err, "run the host worker as root")
	default:
		return errs.NewTransient(object, action, err)
	}
}
