package etcdstate

import (
	"context"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// lease takes a lease, and gives the function that gives it back at once, also after ctx
// has ended. One that cannot be given back runs out after ttl (whole seconds).
func (s *Store) lease(ctx context.Context, object string, ttl time.Duration) (id clientv3.LeaseID, giveBack func(), err error) {
	granted, err := s.client.Grant(ctx, int64(ttl/time.Second))
	if err != nil {
		return 0, nil, Translate(ctx, object, "take lease", err)
	}
	return granted.ID, func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), unlockTimeout)
		defer cancel()
		_, _ = s.client.Revoke(ctx, granted.ID)
	}, nil
}
