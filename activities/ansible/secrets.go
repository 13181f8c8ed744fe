package ansible

import (
	"context"
	"errors"
	"slices"
	"unicode/utf8"

	"burrow.dev/burrow/internal/ansiblex"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
)

// Secrets is the secrets that people set.
type Secrets interface {
	// Get gives a secret in clear; errs.ErrNotFound when there is none.
	Get(ctx context.Context, name string) ([]byte, error)
}

// secrets are the values of what a run names, for as long as it runs.
type secrets map[string]string

// secrets reads all that spec names. One that is not there is an error of class missing,
// which says what to set.
func (a *Activities) secrets(ctx context.Context, owner string, spec manifest.Ansible, missing errs.Class, then string) (secrets, error) {
	const action = "read secrets of the playbook"
	values := secrets{}
	for _, name := range spec.SecretNames() {
		value, err := a.o.Secrets.Get(ctx, name)
		if errors.Is(err, errs.ErrNotFound) {
			return nil, errs.New(missing, owner, action, errs.Reason("%w: there is no secret %s", errs.ErrNotFound, name), "burrow secret set "+name+", then "+then)
		}
		if err != nil {
			return nil, errs.New(errs.ClassOf(err), owner, action, err, "")
		}
		if !utf8.Valid(value) {
			return nil, errs.New(missing, owner, action, errs.Reason("%w: secret %s is not text", errs.ErrInvalid, name), "burrow secret set "+name+", then "+then)
		}
		values[name] = string(value)
	}
	return values, nil
}

// redactor hides all of them.
func (s secrets) redactor() *ansiblex.Redactor {
	values := make([]string, 0, len(s))
	for _, value := range s {
		values = append(values, value)
	}
	slices.Sort(values)
	return ansiblex.NewRedactor(values...)
}

// of gives the secret that a field names, or "".
func (s secrets) of(field string) string {
	name, _ := manifest.SecretName(field)
	return s[name]
}

// in gives a value of extraVars with the secrets in their places.
func (s secrets) in(value any) any {
	switch v := value.(type) {
	case string:
		if _, ok := manifest.SecretName(v); ok {
			return ansiblex.AsData(s.of(v)) // a password may have {{ in it
		}
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = s.in(item)
		}
		return out
	case map[string]any:
		return s.inAll(v)
	}
	return value
}

func (s secrets) inAll(vars map[string]any) map[string]any {
	out := make(map[string]any, len(vars))
	for name, value := range vars {
		out[name] = s.in(value)
	}
	return out
}
