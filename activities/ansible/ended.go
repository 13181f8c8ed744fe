package ansible

// endedError is the error of a run that has a log. Its text is the error's; its details,
// which Temporal keeps with it, say which run it was and how far it came.
type endedError struct {
	error
	out RunOut
}

// Unwrap gives the error itself, with its class.
func (e *endedError) Unwrap() error { return e.error }

// Details are a RunOut.
func (e *endedError) Details() any { return e.out }
