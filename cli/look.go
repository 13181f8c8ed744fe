package cli

import (
	"context"
	"errors"

	ucli "github.com/urfave/cli/v2"
	"go.temporal.io/sdk/client"

	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/gateway"
	"burrow.dev/burrow/manifest"
)

// look reads the record of a resource. The error of one that is not there has the name
// that was likely meant.
func look(ctx context.Context, gw *gateway.Client, ref Ref) (manifest.Record, error) {
	rec, err := gw.Get(ctx, ref.Kind, ref.Name)
	return rec, near(ctx, gw, ref, err)
}

// near adds to the error of an unknown resource the one that was likely meant.
func near(ctx context.Context, gw *gateway.Client, ref Ref, err error) error {
	if !errors.Is(err, errs.ErrNotFound) {
		return err
	}
	var names []string
	if gw.EachSummary(ctx, ref.Kind, func(rec manifest.Record) error { names = append(names, rec.Metadata.Name); return nil }) != nil {
		return err
	}
	return errs.NewPermanent(ref.String(), "look up", errs.Reason("%w%s", errs.ErrNotFound, didYouMean(ref.Name, names)),
		"`burrow get "+ref.Kind.Word()+"` lists what there is")
}

// refuseUnknown refuses what there is not: neither its record nor an operation that makes
// it. It also says what else keeps the record from being read.
func refuseUnknown(ctx context.Context, gw *gateway.Client, tc client.Client, ref Ref) error {
	_, err := look(ctx, gw, ref)
	if !errors.Is(err, errs.ErrNotFound) {
		return err
	}
	_, open, openErr := openRun(ctx, tc, ref.String())
	if openErr != nil || open {
		return openErr
	}
	return err
}

// refuseIfUnknown is refuseUnknown for operations that Temporal takes while no worker
// answers: without one, the operation itself says that its resource is not there.
func refuseIfUnknown(c *ucli.Context, tc client.Client, ref Ref) error {
	gw, err := openGateway(c)
	if err != nil {
		return nil
	}
	defer func() { _ = gw.Close() }()
	if err := refuseUnknown(c.Context, gw, tc, ref); errors.Is(err, errs.ErrNotFound) {
		return err
	}
	return nil
}
