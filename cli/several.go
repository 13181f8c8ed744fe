package cli

import (
	"errors"
	"slices"
)

// severalErrors are those of a command about several resources: each is reported by
// itself, and the worst decides the exit code.
type severalErrors []error

// Error gives all of them, one a line.
func (s severalErrors) Error() string { return errors.Join(s...).Error() }

// Unwrap gives them.
func (s severalErrors) Unwrap() []error { return s }

// code is the exit code of the worst.
func (s severalErrors) code() int {
	worst := ExitStopped
	for _, err := range s {
		if code := codeOf(err); slices.Index(severity, code) < slices.Index(severity, worst) {
			worst = code
		}
	}
	return worst
}

// together makes one error of some of which any may be nil; nil when all are. One alone
// stays itself.
func together(all ...error) error {
	var several severalErrors
	for _, err := range all {
		if err != nil {
			several = append(several, err)
		}
	}
	switch len(several) {
	case 0:
		return nil
	case 1:
		return several[0]
	}
	return several
}
