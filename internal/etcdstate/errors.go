package etcdstate

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"burrow.dev/burrow/internal/errs"
)

// Translate gives an etcd client's error its sentinel, its class and its words. It is
// the only place that looks at the client's errors. nil stays nil; errors of ours and of
// the caller's own context pass as they are.
func Translate(ctx context.Context, object, action string, err error) error {
	if err == nil {
		return nil
	}
	var ours *errs.Error
	if errors.As(err, &ours) {
		return err
	}
	if cause := ctx.Err(); cause != nil {
		return fmt.Errorf("%s: %s: %w", object, action, cause)
	}
	var etcd rpctypes.EtcdError
	code := status.Code(err)
	if errors.As(err, &etcd) {
		code = etcd.Code()
	}
	switch {
	case errors.Is(err, rpctypes.ErrNoSpace):
		return errs.NewOperator(object, action, fmt.Errorf("%w: etcd: %w", errs.ErrNoSpace, err),
			"`etcdctl endpoint status` shows its size and the alarm; defragment it or raise its quota, then disarm the alarm")
	case code == codes.PermissionDenied || code == codes.Unauthenticated:
		return errs.NewOperator(object, action, fmt.Errorf("etcd refuses: %w", err), "check the certificate in worker.json")
	case code == codes.InvalidArgument && !errors.Is(err, rpctypes.ErrTooManyRequests):
		return errs.NewPermanent(object, action, fmt.Errorf("%w: etcd: %w", errs.ErrInvalid, err), "`burrow doctor` shows which etcd answers, and its version")
	}
	// A wrong certificate is transient too: what waits for etcd goes on when it is mended.
	if says, next := distrust(err); says != "" {
		return errs.New(errs.Transient, object, action, fmt.Errorf("%s: %w: %w", says, errs.ErrUnavailable, err), next)
	}
	return errs.New(errs.Transient, object, action, fmt.Errorf("etcd %w: %w", errs.ErrUnavailable, err), awayNext)
}

const (
	// awayNext is what a person can do about an etcd that does not answer.
	awayNext = "it is tried again; `burrow status` and `burrow doctor` show how etcd is"
	// conflictNext is what a person can do about a record that changes all the time.
	conflictNext = "it is tried again; `burrow get -w` shows what writes"
)

// distrust says which side of a connection does not trust the other, and what to do; ""
// when that is not what went wrong. gRPC hands on no more than the text of it.
func distrust(err error) (says, next string) {
	switch text := err.Error(); {
	case strings.Contains(text, "tls: failed to verify certificate"):
		return "etcd shows a certificate that is not trusted", "check that etcd.endpoints in worker.json are your etcd's, and that etcd.tls.ca is the authority of its certificate"
	case strings.Contains(text, "remote error: tls: "):
		return "etcd refuses this worker's certificate", "check etcd.tls in worker.json: the certificate must be the worker's, valid, and of the authority that etcd trusts"
	}
	return "", ""
}
