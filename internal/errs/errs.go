// Package errs is the one vocabulary of failure: what an error is about, what was
// being done, what the user can do next, and which of three classes decides what
// the operation does with it.
//
//	driver error ──translate──▶ errs.Error{Class, Object, Action, Next} ──worker interceptor──▶ Temporal ApplicationError
//
// The class is decided once, where the driver's error is translated. Everything
// that carries no class is Transient: it is retried for ever.
package errs

import (
	"errors"
	"fmt"
	"strings"
)

// Class says what an operation does with an error.
type Class string

const (
	// Transient errors are retried for ever, 1 s doubling to 1 min. It is the default.
	Transient Class = "Transient"
	// Permanent errors (bad input, checksum mismatch, address taken, unsupported
	// here) are not retried; the operation compensates and ends Failed.
	Permanent Class = "Permanent"
	// Operator errors (a task failed, disk full, permission denied) need a person;
	// the operation does what onFailure says: hold or roll back.
	Operator Class = "Operator"
)

// Base sentinels. Domain errors wrap them, so that errors.Is works across drivers.
var (
	ErrNotFound    = errors.New("not found")
	ErrExists      = errors.New("already exists")
	ErrNotManaged  = errors.New("not made by burrow")
	ErrConflict    = errors.New("changed meanwhile")
	ErrUnavailable = errors.New("unavailable")
	ErrNoSpace     = errors.New("out of space")
	ErrBusy        = errors.New("busy")
	ErrInvalid     = errors.New("invalid")
)

// Error is an error with the name of the object, the action, and the next step.
type Error struct {
	// Class decides retry, compensate or hold; empty means Transient.
	Class Class
	// Object is the thing as the user names it: "server/db", "volume data-1 in pool burrow".
	Object string
	// Action is what was being done, as an infinitive: "attach volume".
	Action string
	// Next is one sentence: what the user can do. May be empty for Transient.
	Next string
	// Err is the cause. Never carries a secret.
	Err error
}

// Error gives "object: action: cause; next".
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Object)
	b.WriteString(": ")
	b.WriteString(e.Action)
	if e.Err != nil {
		b.WriteString(": ")
		b.WriteString(e.Err.Error())
	}
	if e.Next != "" {
		b.WriteString("; ")
		b.WriteString(e.Next)
	}
	return b.String()
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// New makes an error of a class. cause may be nil.
func New(class Class, object, action string, cause error, next string) error {
	return &Error{Class: class, Object: object, Action: action, Err: cause, Next: next}
}

// NewTransient makes an error that is retried for ever.
func NewTransient(object, action string, cause error) error {
	return New(Transient, object, action, cause, "")
}

// NewPermanent makes an error that ends the operation with compensation.
func NewPermanent(object, action string, cause error, next string) error {
	return New(Permanent, object, action, cause, next)
}

// NewOperator makes an error that a person must mend.
func NewOperator(object, action string, cause error, next string) error {
	return New(Operator, object, action, cause, next)
}

// Reason is a plain cause for the constructors, formatted.
func Reason(format string, args ...any) error { return fmt.Errorf(format, args...) }

// ClassOf gives the class of the outermost Error in err's chain that has one, else Transient.
func ClassOf(err error) Class {
	var e *Error
	for errors.As(err, &e) {
		if e.Class != "" {
			return e.Class
		}
		err = e.Err
	}
	return Transient
}
