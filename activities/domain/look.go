package domain

import (
	"context"
	"errors"

	"burrow.dev/burrow/internal/errs"
)

// Look tells how the server's domain stands. None, or one that is not the server's, is
// Found false.
func (a *Activities) Look(ctx context.Context, in LookIn) (LookOut, error) {
	_, err := a.own(ctx, in.Server, "look at domain")
	if errors.Is(err, errs.ErrNotFound) || errors.Is(err, errs.ErrNotManaged) {
		return LookOut{}, nil
	}
	if err != nil {
		return LookOut{}, err
	}
	state, reason, err := a.State(ctx, in.Server.UID)
	if errors.Is(err, errs.ErrNotFound) {
		return LookOut{}, nil
	}
	return LookOut{Found: err == nil, State: state, Reason: reason}, err
}
