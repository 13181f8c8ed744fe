package etcdstate

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"burrow.dev/burrow/internal/devstacktest"
	"burrow.dev/burrow/internal/errs"
)

// newLossyStore loses one response in ten, after etcd has done what was asked.
func newLossyStore(t *testing.T, endpoint string) *Store {
	t.Helper()
	lose := func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		err := invoke(ctx, method, req, reply, cc, opts...)
		if err == nil && rand.N(10) == 0 {
			return status.Error(codes.Unavailable, "the response was lost")
		}
		return err
	}
	return openStore(t, endpoint, Options{DialOptions: []grpc.DialOption{grpc.WithChainUnaryInterceptor(lose)}})
}

// insist calls until the answer is not that etcd is away.
func insist[T any](call func() (T, error)) (T, error) {
	for {
		got, err := call()
		if err == nil || errs.ClassOf(err) != errs.Transient {
			return got, err
		}
	}
}

func TestUniqueNamesHaveOneOwner(t *testing.T) {
	s := newTestStore(t)
	own := func(owner string, names ...string) string {
		got, err := s.OwnOne(t.Context(), "macs", owner, names...)
		require.NoError(t, err)
		return got
	}
	require.Equal(t, "m1", own("a", "m1", "m2"))
	require.Equal(t, "m2", own("b", "m1", "m2"), "the first that nobody has")
	require.Empty(t, own("c", "m1", "m2"))
	require.NoError(t, s.Disown(t.Context(), "macs", "b", "m1", "m3"))
	require.NoError(t, s.Disown(t.Context(), "macs", "a", "m1"))
	require.Equal(t, "m2", own("b", "m1", "m2"), "the same answer, though m1 is free now")
	keys, err := s.KeysBelow(t.Context(), "macs")
	require.NoError(t, err)
	require.Equal(t, []string{"macs/m2"}, keys)
}

func TestOwnersThatComeAtOnceWithLostResponsesHaveOneNameEach(t *testing.T) {
	endpoint := devstacktest.Etcd(t)
	names := []string{"m1", "m2", "m3", "m4", "m5", "m6", "m7", "m8"}
	var mu sync.Mutex
	owners, has := map[string]string{}, map[string]string{}
	var group errgroup.Group
	for range 3 {
		s := newLossyStore(t, endpoint)
		for owner := range 8 {
			group.Go(func() error {
				owner := fmt.Sprint("o", owner)
				got, err := insist(func() (string, error) { return s.OwnOne(t.Context(), "macs", owner, names...) })
				if err != nil {
					return err
				}
				mu.Lock()
				defer mu.Unlock()
				if (owners[got] != "" && owners[got] != owner) || (has[owner] != "" && has[owner] != got) {
					return fmt.Errorf("%s got %q, had %q; %q is %q's", owner, got, has[owner], got, owners[got])
				}
				owners[got], has[owner] = owner, got
				return nil
			})
		}
	}
	require.NoError(t, group.Wait())
	require.Len(t, owners, 8)
}
