package cli

import (
	"encoding/json"
	"log/slog"
	"os"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"burrow.dev/burrow/internal/buildinfo"
	"burrow.dev/burrow/internal/config"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/worker"
)

// workerCommand runs workers; `burrow up` and service managers start it.
func workerCommand() *ucli.Command {
	return &ucli.Command{
		Name:     "worker",
		Category: categoryMachine,
		Usage:    "run the control or host worker and its gateway (`burrow up` does it for you)",
		Flags: []ucli.Flag{
			&ucli.StringFlag{Name: "config", Value: config.DefaultDataDir + "/" + config.WorkerFile, Usage: "`FILE` with addresses and credentials", TakesFile: true},
			&ucli.StringFlag{Name: "roles", Value: worker.RoleControl + "," + worker.RoleHost, Usage: "`ROLES` of this process, with commas"},
		},
		Action: func(c *ucli.Context) error {
			cfg, err := readWorkerConfig(c.String("config"))
			if err != nil {
				return err
			}
			log := slog.New(slog.NewTextHandler(c.App.ErrWriter, &slog.HandlerOptions{Level: slog.LevelInfo}))
			return worker.Run(c.Context, worker.Options{
				Config: cfg, Roles: strings.Split(c.String("roles"), ","), Version: buildinfo.Version(), Log: log,
			})
		},
	}
}

func readWorkerConfig(path string) (config.Worker, error) {
	var cfg config.Worker
	b, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(b, &cfg)
	}
	if err != nil {
		return cfg, errs.NewPermanent(path, "read", err, "`burrow up` writes it; docs/distributed.md shows how to write it by hand")
	}
	return cfg, nil
}
