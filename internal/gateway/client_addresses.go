package gateway

import (
	"context"
	"time"
	"unicode/utf8"

	"go4.org/netipx"

	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/gateway/gatewaypb"
	"burrow.dev/burrow/manifest"
)

// SubnetUsage is how many addresses of a subnet are in which state: decimal, or "more than
// 2^64".
type SubnetUsage struct{ Subnet, Size, Used, Reserved, Quarantined, Free string }

// Address is an address that is used, reserved or in quarantine, or a range that is reserved.
type Address struct {
	// First and Last are the same but for a range.
	First, Last string
	// State is "used", "reserved" or "quarantined".
	State string
	// Owner is "server/db db-net-0", "gateway", or who reserved it; of quarantine, who had it.
	Owner   string
	Since   time.Time
	Until   time.Time // of quarantine, else zero
	Comment string
}

// ListAddresses gives the totals of a network to totals, then its addresses in order to
// each, as they come; an error of either ends it.
func (c *Client) ListAddresses(ctx context.Context, network string, totals func([]SubnetUsage) error, each func(Address) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := gatewaypb.NewAddressesClient(c.conn).ListAddresses(ctx, &gatewaypb.ListAddressesRequest{Network: network})
	if err != nil {
		return c.failed(err, "list addresses")
	}
	return receive(stream, c.failingUnless(ctx, "list addresses"), func(event *gatewaypb.AddressEvent) error {
		if usage := event.GetUsage(); usage != nil {
			if err := totals(decodeUsage(usage)); err != nil {
				return err
			}
		}
		if a := event.GetAddress(); a != nil {
			return each(Address{
				First: a.GetFirst(), Last: a.GetLast(), State: a.GetState(), Owner: a.GetOwner(),
				Since: fromUnixMs(a.GetSinceUnixMs()), Until: fromUnixMs(a.GetUntilUnixMs()), Comment: a.GetComment(),
			})
		}
		return nil
	})
}

func decodeUsage(u *gatewaypb.AddressUsage) []SubnetUsage {
	var out []SubnetUsage
	for _, s := range u.GetSubnets() {
		out = append(out, SubnetUsage{
			Subnet: s.GetSubnet(), Size: s.GetSize(), Used: s.GetUsed(), Reserved: s.GetReserved(),
			Quarantined: s.GetQuarantined(), Free: s.GetFree(),
		})
	}
	return out
}

// ReserveAddresses keeps a range of a network from being given out.
func (c *Client) ReserveAddresses(ctx context.Context, network string, r netipx.IPRange, comment, by string) error {
	if !utf8.ValidString(comment) {
		return errs.NewPermanent(manifest.Ref(manifest.KindNetwork, network), "reserve "+rangeText(r), errs.Reason("%w: the comment is not in UTF-8", errs.ErrInvalid), "write another comment")
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	_, err := gatewaypb.NewAddressesClient(c.conn).ReserveAddresses(ctx, &gatewaypb.ReserveAddressesRequest{
		Network: network, First: r.From().String(), Last: r.To().String(), Comment: comment, By: by,
	})
	return c.failed(err, "reserve addresses")
}

// UnreserveAddresses lets a range be given out again. None reserved is success.
func (c *Client) UnreserveAddresses(ctx context.Context, network string, r netipx.IPRange) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	_, err := gatewaypb.NewAddressesClient(c.conn).UnreserveAddresses(ctx, &gatewaypb.UnreserveAddressesRequest{
		Network: network, First: r.From().String(), Last: r.To().String(),
	})
	return c.failed(err, "unreserve addresses")
}
