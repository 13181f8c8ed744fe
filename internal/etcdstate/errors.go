package etcdstate

import (
	"context"
	"errors"
	"fmt"

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
		return errs.NewPermanent(object, action, fmt.Errorf("%w: etcd: %w", errs.ErrInvalid, err), "")
	}
	return errs.NewTransient(object, action, fmt.Errorf("etcd %w: %w", errs.ErrUnavailable, err))
}
