package gateway

import (
	"context"
	"errors"
	"strings"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"burrow.dev/burrow/internal/errs"
)

// Keys of the details that carry an errs.Error over the wire.
const (
	detailDomain = "burrow.dev"
	detailObject = "object"
	detailAction = "action"
	detailCause  = "cause"
	detailNext   = "next"
)

// maxDetail bounds a part of an error on the wire: gRPC sends it in headers.
const maxDetail = 2000

// sentinelCodes pairs our sentinels with gRPC's codes, in order of precedence.
func sentinelCodes() []struct {
	sentinel error
	code     codes.Code
} {
	return []struct {
		sentinel error
		code     codes.Code
	}{
		{errs.ErrNotFound, codes.NotFound},
		{errs.ErrInvalid, codes.InvalidArgument},
		{errs.ErrExists, codes.AlreadyExists},
		{errs.ErrNotManaged, codes.FailedPrecondition},
		{errs.ErrBusy, codes.Aborted},
		{errs.ErrConflict, codes.Aborted},
		{errs.ErrNoSpace, codes.ResourceExhausted},
		{errs.ErrUnavailable, codes.Unavailable},
		{context.DeadlineExceeded, codes.DeadlineExceeded},
		{context.Canceled, codes.Canceled},
	}
}

// toStatus makes the error that a handler returns from ours, whole: the other side
// shows object, action, cause and next step. nil and statuses pass.
func toStatus(err error) error {
	if err == nil {
		return nil
	}
	var own *errs.Error
	if _, ok := status.FromError(err); ok && !errors.As(err, &own) {
		return err
	}
	code := codes.Unknown
	for _, pair := range sentinelCodes() {
		if errors.Is(err, pair.sentinel) {
			code = pair.code
			break
		}
	}
	st := status.New(code, bounded(err.Error()))
	if !errors.As(err, &own) {
		return st.Err()
	}
	cause := ""
	if own.Err != nil {
		cause = bounded(own.Err.Error())
	}
	detailed, detailErr := st.WithDetails(&errdetails.ErrorInfo{
		Domain: detailDomain, Reason: string(errs.ClassOf(own)),
		Metadata: map[string]string{
			detailObject: bounded(own.Object), detailAction: bounded(own.Action),
			detailCause: cause, detailNext: bounded(own.Next),
		},
	})
	if detailErr != nil {
		return st.Err()
	}
	return detailed.Err()
}

// fromStatus makes our error again. what and action name the call for errors that
// carry no name of their own.
func fromStatus(err error, what, action string) error {
	st, ok := status.FromError(err)
	if err == nil || !ok {
		return err
	}
	var sentinel error
	for _, pair := range sentinelCodes() {
		if pair.code == st.Code() {
			sentinel = pair.sentinel
			break
		}
	}
	for _, detail := range st.Details() {
		info, isInfo := detail.(*errdetails.ErrorInfo)
		if !isInfo || info.GetDomain() != detailDomain {
			continue
		}
		m := info.GetMetadata()
		return errs.New(errs.Class(info.GetReason()), m[detailObject], m[detailAction], &remote{m[detailCause], sentinel}, m[detailNext])
	}
	return errs.NewTransient(what, action, &remote{st.Message(), sentinel})
}

// remote is a cause from the other side: its words, and the sentinel it stood for.
type remote struct {
	text     string
	sentinel error
}

func (r *remote) Error() string { return r.text }
func (r *remote) Unwrap() error { return r.sentinel }

func bounded(s string) string {
	if len(s) > maxDetail {
		s = s[:maxDetail] + "…"
	}
	return strings.ToValidUTF8(s, "�")
}

// absent is the answer for a dependency that this worker has not.
func absent(what string) error {
	return status.Errorf(codes.Unimplemented, "this worker has no %s: ask a worker with the host role", what)
}
