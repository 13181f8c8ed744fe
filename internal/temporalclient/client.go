// Package temporalclient makes the one kind of Temporal client that burrow uses:
// address, namespace, TLS, identity and logging are set here and nowhere else.
package temporalclient

import (
	"context"
	"fmt"
	"log/slog"
	"os"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"

	"burrow.dev/burrow/internal/config"
	"burrow.dev/burrow/internal/errs"
)

// Dial connects and checks that the server answers before ctx ends. The error is
// errs.ErrUnavailable with the next step when it does not.
func Dial(ctx context.Context, cfg config.Temporal, logger *slog.Logger) (client.Client, error) {
	object := "Temporal at " + cfg.Address
	tlsConfig, err := cfg.TLS.Client()
	if err != nil {
		return nil, errs.NewOperator(object, "read its certificates", err, "are you in the group burrow? `burrow status` shows what runs")
	}
	host, _ := os.Hostname()
	c, err := client.DialContext(ctx, client.Options{
		HostPort:          cfg.Address,
		Namespace:         cfg.Namespace,
		Identity:          fmt.Sprintf("burrow/%d@%s", os.Getpid(), host),
		Logger:            log.NewStructuredLogger(logger),
		ConnectionOptions: client.ConnectionOptions{TLS: tlsConfig},
	})
	if err != nil {
		return nil, errs.New(errs.Transient, object, "connect", fmt.Errorf("%w: %w", errs.ErrUnavailable, err), "is burrow up? `burrow status` shows it")
	}
	return c, nil
}
