package cli

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"time"

	ucli "github.com/urfave/cli/v2"
	"go.temporal.io/sdk/client"

	"burrow.dev/burrow/internal/config"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/gateway"
	"burrow.dev/burrow/internal/imagestore/catalogue"
	"burrow.dev/burrow/internal/temporalclient"
	"burrow.dev/burrow/manifest"
)

// temporalTimeout bounds the first answer of Temporal, which is on this machine or in this site.
const temporalTimeout = 5 * time.Second

// loadConfig reads the client configuration.
func loadConfig(c *ucli.Context) (config.Client, error) {
	path := c.String("config")
	object := "client configuration " + path
	var cfg config.Client
	content, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return cfg, errs.NewPermanent(object, "read", errs.Reason("%w: there is no such file", errs.ErrNotFound),
			"start burrow here: sudo burrow up --detach; or name another file with --config or BURROW_CONFIG")
	case errors.Is(err, fs.ErrPermission):
		return cfg, errs.NewPermanent(object, "read", err,
			"become a member of group "+config.Group+" (sudo usermod -aG "+config.Group+" $USER, then log in again), or use sudo")
	case err != nil:
		return cfg, errs.NewPermanent(object, "read", err, "")
	}
	if err := json.Unmarshal(content, &cfg); err != nil {
		return cfg, errs.NewPermanent(object, "read", err, "correct the file; `burrow up` writes a new one when it is gone")
	}
	return cfg, nil
}

// openGateway connects to the gateway of the configuration.
func openGateway(c *ucli.Context) (*gateway.Client, error) {
	cfg, err := loadConfig(c)
	if err != nil {
		return nil, err
	}
	return gateway.Dial(c.Context, cfg.Gateway)
}

// openTemporal connects to the Temporal of the configuration.
func openTemporal(c *ucli.Context) (client.Client, error) {
	cfg, err := loadConfig(c)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(c.Context, temporalTimeout)
	defer cancel()
	return temporalclient.Dial(ctx, cfg.Temporal, slog.New(slog.DiscardHandler))
}

// knownTo reads all that validation compares manifests with.
func knownTo(ctx context.Context, gw *gateway.Client) (manifest.Known, error) {
	var records []manifest.Record
	for _, kind := range manifest.Kinds() {
		more, err := gw.List(ctx, kind)
		if err != nil {
			return nil, err
		}
		records = append(records, more...)
	}
	return manifest.NewSnapshot(records, catalogue.Names(), true), nil
}
