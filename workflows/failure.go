package workflows

import (
	"errors"

	"go.temporal.io/sdk/temporal"

	"burrow.dev/burrow/internal/errs"
)

// classOf reads the class that the worker wrote into an activity's error.
func classOf(err error) errs.Class {
	var app *temporal.ApplicationError
	if errors.As(err, &app) {
		switch c := errs.Class(app.Type()); c {
		case errs.Permanent, errs.Operator:
			return c
		}
	}
	return errs.ClassOf(err)
}

// reason is the text of a failure for people: the activity's own words, without
// Temporal's wrapping of types, ids and attempts.
func reason(err error) string {
	if stopped(err) {
		return "cancelled"
	}
	var app *temporal.ApplicationError
	if errors.As(err, &app) {
		return app.Message()
	}
	var classed *errs.Error
	if errors.As(err, &classed) {
		return classed.Error()
	}
	var timeout *temporal.TimeoutError
	if errors.As(err, &timeout) {
		return timeout.Message()
	}
	return err.Error()
}

// fail turns a reason into the workflow's end. Its type is the class, so that a parent
// and the CLI decide on it as they would on an activity's.
func fail(err error) error {
	if temporal.IsCanceledError(err) {
		return err
	}
	class := classOf(err)
	if class == errs.Transient {
		class = errs.Permanent
	}
	return temporal.NewApplicationErrorWithOptions(reason(err), string(class),
		temporal.ApplicationErrorOptions{NonRetryable: true})
}
