package faults

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"

	"go.temporal.io/sdk/interceptor"
	sdk "go.temporal.io/sdk/worker"

	"burrow.dev/burrow/cli"
	"burrow.dev/burrow/internal/buildinfo"
	"burrow.dev/burrow/internal/config"
	"burrow.dev/burrow/test/lab"
	"burrow.dev/burrow/worker"
)

// programEnv makes this binary the burrow program; its value is the folder of orders.
const programEnv = "BURROW_FAULTS_ORDERS"

// versionEnv is what a worker says its version is: the other binary of a deployment.
const versionEnv = "BURROW_FAULTS_VERSION"

func TestMain(m *testing.M) {
	if folder := os.Getenv(programEnv); folder != "" {
		os.Exit(program(orders(folder), os.Args))
	}
	lab.Main(m, lab.OVS, lab.Libvirt)
}

// program is burrow. Its worker obeys the orders; everything else is as users have it.
func program(o orders, args []string) int {
	if len(args) < 2 || args[1] != "worker" {
		return cli.Main(context.Background(), args)
	}
	flags := flag.NewFlagSet("worker", flag.ExitOnError)
	path := flags.String("config", "", "")
	roles := flags.String("roles", "", "")
	_ = flags.Parse(args[2:]) // it exits
	var cfg config.Worker
	text, err := os.ReadFile(*path)
	if err == nil {
		err = json.Unmarshal(text, &cfg)
	}
	if err == nil {
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
		defer stop()
		version := os.Getenv(versionEnv)
		if version == "" {
			version = buildinfo.Version()
		}
		// Every workflow task is a replay: what is not deterministic shows at once, and no task
		// waits for a worker that is dead.
		sdk.SetStickyWorkflowCacheSize(0)
		err = worker.Run(ctx, worker.Options{
			Config: cfg, Roles: strings.Split(*roles, ","), Version: version,
			Log:          slog.New(slog.NewTextHandler(os.Stderr, nil)),
			Interceptors: []interceptor.WorkerInterceptor{&saboteur{orders: o}},
		})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}
