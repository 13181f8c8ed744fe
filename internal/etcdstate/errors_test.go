package etcdstate

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"burrow.dev/burrow/internal/errs"
)

func TestEveryErrorOfEtcdNamesTheNextStep(t *testing.T) {
	for name, cause := range map[string]error{
		"away": errors.New("connection refused"), "no leader": rpctypes.ErrNoLeader, "full": rpctypes.ErrNoSpace, "too many": rpctypes.ErrTooManyRequests,
		"denied": status.Error(codes.PermissionDenied, "no"), "invalid": status.Error(codes.InvalidArgument, "no"), "compacted": rpctypes.ErrCompacted,
	} {
		var own *errs.Error
		err := Translate(t.Context(), "server/db", "read record", cause)
		require.ErrorAs(t, err, &own, name)
		require.NotEmpty(t, own.Next, name)
		require.ErrorIs(t, err, cause, name)
		require.Contains(t, err.Error(), "server/db: read record: ", name)
	}
	never := func() (bool, error) { return false, nil }
	var own *errs.Error
	require.ErrorAs(t, RetryConflict(t.Context(), "server/db", "update record", never), &own)
	require.NotEmpty(t, own.Next)
}
