package gateway

import (
	"context"
	"errors"
	"net/netip"
	"strings"

	"go4.org/netipx"
	"google.golang.org/grpc"

	"burrow.dev/burrow/internal/addrspace"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/gateway/gatewaypb"
	"burrow.dev/burrow/manifest"
)

// addressPools answers the Addresses service.
type addressPools struct {
	gatewaypb.UnimplementedAddressesServer
	deps Deps
}

// ListAddresses implements the service.
func (a addressPools) ListAddresses(req *gatewaypb.ListAddressesRequest, stream grpc.ServerStreamingServer[gatewaypb.AddressEvent]) error {
	if a.deps.Addresses == nil {
		return absent("address pools")
	}
	ctx := stream.Context()
	rec, err := record(ctx, a.deps.Records, manifest.KindNetwork, req.GetNetwork())
	if err != nil {
		return err
	}
	usage, err := a.deps.Addresses.Usage(ctx, rec.Metadata.UID)
	if err != nil {
		return err
	}
	if err := stream.Send(&gatewaypb.AddressEvent{Usage: encodeUsage(usage)}); err != nil {
		return err
	}
	names, err := serverNamesIn(ctx, a.deps.Records)
	if err != nil {
		return err
	}
	return a.deps.Addresses.EachAddress(ctx, rec.Metadata.UID, func(h addrspace.Holding) error {
		owner := h.Owner
		if h.State != addrspace.StateReserved {
			owner = names.of(h.Owner)
		}
		return stream.Send(&gatewaypb.AddressEvent{Address: &gatewaypb.Address{
			First: h.First.String(), Last: h.Last.String(), State: string(h.State), Owner: owner,
			SinceUnixMs: unixMs(h.Since), UntilUnixMs: unixMs(h.Until), Comment: h.Comment,
		}})
	})
}

func encodeUsage(u addrspace.Usage) *gatewaypb.AddressUsage {
	out := &gatewaypb.AddressUsage{}
	for _, s := range u.Subnets {
		out.Subnets = append(out.Subnets, &gatewaypb.SubnetUsage{
			Subnet: s.Subnet.String(), Size: s.Size.String(), Used: s.Used.String(), Reserved: s.Reserved.String(),
			Quarantined: s.Quarantined.String(), Free: s.Free.String(),
		})
	}
	return out
}

// ReserveAddresses implements the service.
func (a addressPools) ReserveAddresses(ctx context.Context, req *gatewaypb.ReserveAddressesRequest) (*gatewaypb.ReserveAddressesResponse, error) {
	by := requester(req)
	if by == addrspace.ByManifest {
		by += " (a person)" // the manifest's own reservations are told apart by this word
	}
	err := a.changeReserved(ctx, "reserve", req, func(uid string, r netipx.IPRange) error {
		return a.deps.Addresses.Reserve(ctx, uid, r, addrspace.Reservation{By: by, Comment: req.GetComment()})
	})
	if err != nil {
		return nil, err
	}
	return &gatewaypb.ReserveAddressesResponse{}, nil
}

// UnreserveAddresses implements the service.
func (a addressPools) UnreserveAddresses(ctx context.Context, req *gatewaypb.UnreserveAddressesRequest) (*gatewaypb.UnreserveAddressesResponse, error) {
	err := a.changeReserved(ctx, "unreserve", req, func(uid string, r netipx.IPRange) error {
		return a.deps.Addresses.Unreserve(ctx, uid, r)
	})
	if err != nil {
		return nil, err
	}
	return &gatewaypb.UnreserveAddressesResponse{}, nil
}

// rangeRequest is what both requests have.
type rangeRequest interface {
	GetNetwork() string
	GetFirst() string
	GetLast() string
}

func (a addressPools) changeReserved(ctx context.Context, action string, req rangeRequest, change func(uid string, r netipx.IPRange) error) error {
	if a.deps.Addresses == nil {
		return absent("address pools")
	}
	rec, err := record(ctx, a.deps.Records, manifest.KindNetwork, req.GetNetwork())
	if err != nil {
		return err
	}
	ref := manifest.Ref(manifest.KindNetwork, req.GetNetwork())
	first, err1 := netip.ParseAddr(req.GetFirst())
	last, err2 := netip.ParseAddr(req.GetLast())
	r := netipx.IPRangeFrom(first, last)
	if errors.Join(err1, err2) != nil || !r.IsValid() {
		return errs.NewPermanent(ref, action, errs.Reason("%w: %q to %q are no addresses in order", errs.ErrInvalid, req.GetFirst(), req.GetLast()), "")
	}
	return a.explainRange(ctx, rec, action, r, change(rec.Metadata.UID, r))
}

// explainRange puts what an address pool refuses into the words of who asked.
func (a addressPools) explainRange(ctx context.Context, rec manifest.Record, action string, r netipx.IPRange, err error) error {
	ref := manifest.Ref(rec.Kind, rec.Metadata.Name)
	action += " " + rangeText(r)
	var taken *addrspace.TakenError
	var reserved *addrspace.ReservedError
	var refused *addrspace.RefusedError
	switch {
	case errors.As(err, &taken):
		names, listErr := serverNamesIn(ctx, a.deps.Records)
		if listErr != nil {
			return listErr
		}
		return errs.NewPermanent(ref, action, errs.Reason("%w: %s is in use by %s", errs.ErrExists, taken.Addr, names.of(taken.Owner)),
			"choose other addresses (`burrow network ips "+rec.Metadata.Name+"`), or delete that server first")
	case errors.As(err, &reserved):
		have := rangeText(reserved.Reserved.Range())
		if reserved.Reserved.By == addrspace.ByManifest {
			return errs.NewPermanent(ref, action, errs.Reason("%w: its manifest reserves %s", errs.ErrExists, have), "nothing needs to be done for those")
		}
		return errs.NewPermanent(ref, action, errs.Reason("%w: %s reserved %s", errs.ErrExists, reserved.Reserved.By, have),
			"burrow network unreserve "+rec.Metadata.Name+" "+have+", or reserve others")
	case errors.As(err, &refused):
		return errs.NewPermanent(ref, action, errs.Reason("%w: %s: %s", errs.ErrInvalid, refused.Addr, refused.Why), subnetsOf(rec))
	}
	return err
}

// rangeText is a range as people write it: one address alone.
func rangeText(r netipx.IPRange) string {
	if r.From() == r.To() {
		return r.From().String()
	}
	return r.String()
}

func subnetsOf(rec manifest.Record) string {
	if rec.Status.Network == nil {
		return "`burrow describe network " + rec.Metadata.Name + "` shows its subnets"
	}
	var all []string
	for _, s := range rec.Status.Network.Subnets {
		all = append(all, s.CIDR)
	}
	return "its subnets are " + strings.Join(all, ", ") + "; network, broadcast and gateway address, and what its manifest reserves, are never given out"
}

// serverNames are servers by uid.
type serverNames map[string]string

func serverNamesIn(ctx context.Context, records Records) (serverNames, error) {
	names := serverNames{}
	err := records.EachSummary(ctx, manifest.KindServer, func(encoded []byte) error {
		rec, err := decodeRecord(&gatewaypb.Record{Json: encoded})
		names[rec.Metadata.UID] = manifest.Ref(rec.Kind, rec.Metadata.Name)
		return err
	})
	return names, err
}

// of names an owner of an address, "<uid>/<nic>/<slot>", for people: "server/db db-net-0".
func (n serverNames) of(owner string) string {
	uid, rest, _ := strings.Cut(owner, "/")
	if uid == addrspace.GatewayOwner {
		return addrspace.GatewayOwner
	}
	nic := rest
	if i := strings.LastIndexByte(rest, '/'); i >= 0 {
		nic = rest[:i]
	}
	name, ok := n[uid]
	if !ok {
		name = "a server that is gone, uid " + uid
	}
	return strings.TrimSpace(name + " " + nic)
}
