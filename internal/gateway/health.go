package gateway

import (
	"context"

	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/gateway/gatewaypb"
)

// health answers the Health service.
type health struct {
	gatewaypb.UnimplementedHealthServer
	deps Deps
}

// StateStore implements the service.
func (h health) StateStore(ctx context.Context, _ *gatewaypb.StateStoreRequest) (*gatewaypb.StateStoreResponse, error) {
	if h.deps.StateStore == nil {
		return nil, errs.NewPermanent("etcd", "ask", errs.Reason("%w: this worker does not tell", errs.ErrInvalid), "")
	}
	found, err := h.deps.StateStore.StateStore(ctx)
	if err != nil {
		return nil, err
	}
	resp := &gatewaypb.StateStoreResponse{Alarms: found.Alarms, Leader: found.Leader, MasterKey: found.MasterKey, WithoutMasterKey: found.WithoutMasterKey}
	for _, m := range found.Members {
		resp.Members = append(resp.Members, &gatewaypb.StateStoreMember{
			Endpoint: m.Endpoint, Version: m.Version, Size: m.Size, InUse: m.InUse, Quota: m.Quota, Leader: m.Leader, Error: m.Error,
		})
	}
	return resp, nil
}

// StateStore asks the worker how etcd is.
func (c *Client) StateStore(ctx context.Context) (StateStoreHealth, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	resp, err := gatewaypb.NewHealthClient(c.conn).StateStore(ctx, &gatewaypb.StateStoreRequest{})
	if err != nil {
		return StateStoreHealth{}, c.failed(err, "ask for etcd")
	}
	found := StateStoreHealth{Alarms: resp.GetAlarms(), Leader: resp.GetLeader(), MasterKey: resp.GetMasterKey(), WithoutMasterKey: resp.GetWithoutMasterKey()}
	for _, m := range resp.GetMembers() {
		found.Members = append(found.Members, StateStoreMember{
			Endpoint: m.GetEndpoint(), Version: m.GetVersion(), Size: m.GetSize(), InUse: m.GetInUse(), Quota: m.GetQuota(), Leader: m.GetLeader(), Error: m.GetError(),
		})
	}
	return found, nil
}
