package worker

import (
	"context"
	"errors"

	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/etcdstate"
	"burrow.dev/burrow/internal/gateway"
)

// stateStore tells how etcd is, and who can read its secrets.
type stateStore struct {
	store   *etcdstate.Store
	secrets *etcdstate.Secrets
}

// StateStore implements gateway.StateStore.
func (s stateStore) StateStore(ctx context.Context) (gateway.StateStoreHealth, error) {
	found, err := s.store.Health(ctx)
	if err != nil && len(found.Members) == 0 {
		return gateway.StateStoreHealth{}, err
	}
	out := gateway.StateStoreHealth{Alarms: found.Alarms}
	for _, m := range found.Members {
		member := gateway.StateStoreMember{
			Endpoint: m.Endpoint, Version: m.Version, Size: m.SizeBytes, InUse: m.InUseBytes, Quota: m.QuotaBytes, Leader: m.Leader,
		}
		if m.Err != nil {
			member.Error = m.Err.Error()
		}
		out.Members = append(out.Members, member)
	}
	if err == nil {
		out.Leader, err = s.store.Leader(ctx, controlLeader)
	}
	if err == nil {
		out.MasterKey, out.WithoutMasterKey, err = s.secrets.Lacking(ctx)
	}
	if errors.Is(err, errs.ErrUnavailable) {
		err = nil // the members say which and why
	}
	return out, err
}
