package scripts

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"burrow.dev/burrow/cli"
	"burrow.dev/burrow/internal/blob"
	"burrow.dev/burrow/internal/config"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/gateway"
	"burrow.dev/burrow/manifest"
)

var update = flag.Bool("update", false, "write what commands print into the scripts' golden files")

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"burrow": func() { os.Exit(cli.Main(context.Background(), os.Args)) },
	})
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata", UpdateScripts: *update, RequireExplicitExec: true, RequireUniqueNames: true,
		Setup: func(env *testscript.Env) error { return setUp(t, env) },
		Cmds:  map[string]func(*testscript.TestScript, bool, []string){"exits": exits, "appears": appears, "terminate": terminate, "store": store},
	})
}

// exits runs a command that must end with an exit code: `exits 2 burrow validate -f x.yaml`.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND [ARGUMENTS]")
	}
	err := ts.Exec(args[1], args[2:]...)
	code := 0
	if exit, ok := err.(interface{ ExitCode() int }); ok {
		code = exit.ExitCode()
	} else if err != nil {
		ts.Fatalf("%s: %v", args[1], err)
	}
	if strconv.Itoa(code) != args[0] {
		ts.Fatalf("%s exits with %d, not %s", strings.Join(args[1:], " "), code, args[0])
	}
}

// appears waits for a file: `appears waiting`.
func appears(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: appears FILE")
	}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for until := time.Now().Add(10 * time.Second); time.Now().Before(until); <-tick.C {
		if _, err := os.Stat(ts.MkAbs(args[0])); err == nil {
			return
		}
	}
	ts.Fatalf("%s does not appear", args[0])
}

// terminate sends SIGTERM to what runs in the background.
func terminate(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: terminate")
	}
	for _, cmd := range ts.BackgroundCmds() {
		ts.Check(cmd.Process.Signal(syscall.SIGTERM))
	}
}

// setUp starts a gateway over the script's own records; a script without a records folder
// has none, as on a machine where burrow is not up.
func setUp(t *testing.T, env *testscript.Env) error {
	work := env.Getenv("WORK")
	env.Setenv("HOME", work)
	env.Setenv("BURROW_CONFIG", filepath.Join(work, "client.json"))
	records := filepath.Join(work, "records")
	if _, err := os.Stat(records); err != nil {
		return nil
	}
	short, err := os.MkdirTemp("", "gwscript") // $WORK is too long for a socket
	if err != nil {
		return err
	}
	env.Defer(func() { _ = os.RemoveAll(short) })
	env.Setenv("SHORT", short)
	cfg := config.Client{Gateway: config.Gateway{Socket: filepath.Join(short, "gw.sock")}}
	env.Setenv("GATEWAY", cfg.Gateway.Socket)
	encoded, err := json.Marshal(cfg)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(work, "client.json"), encoded, 0o600); err != nil {
		return err
	}
	guest, err := startGuest(env)
	if err != nil {
		return err
	}
	return startGateway(t, env, cfg.Gateway, folder{records, guest}, guest)
}

func startGateway(t *testing.T, env *testscript.Env, cfg config.Gateway, records folder, guest *guest) error {
	ctx, cancel := context.WithCancel(t.Context())
	blobs, err := blob.Open(ctx, "file://"+filepath.Join(env.Getenv("WORK"), ".blobs"))
	if err != nil {
		cancel()
		return err
	}
	deps := gateway.Deps{
		Info:    gateway.Info{Version: "v9.9.9", Host: "kvm1", Accelerator: "tcg", AcceleratorReason: "there is no /dev/kvm", Since: time.Now()},
		Records: records, Blobs: blobs, Dialer: guest, Keys: guest, Logs: runLogs{env.Getenv("WORK")},
		Log: slog.New(slog.DiscardHandler),
	}
	if err := keepState(t, env, records, &deps); err != nil {
		cancel()
		return err
	}
	server := gateway.NewServer(deps)
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(ctx, cfg) })
	env.Defer(func() {
		cancel()
		serving.Wait()
		_ = blobs.Close()
	})
	until := time.Now().Add(10 * time.Second)
	for tick := time.NewTicker(5 * time.Millisecond); ; <-tick.C {
		c, err := gateway.Dial(ctx, cfg)
		if err == nil {
			tick.Stop()
			return c.Close()
		}
		if time.Now().After(until) {
			return err
		}
	}
}

// folder is Records over JSON files, KIND-NAME.json.
type folder struct {
	dir   string
	guest *guest
}

func (f folder) Get(_ context.Context, kind manifest.Kind, name string) (manifest.Record, error) {
	var rec manifest.Record
	content, err := os.ReadFile(filepath.Join(f.dir, kind.Word()+"-"+name+".json"))
	if err != nil {
		return rec, errs.NewPermanent(manifest.Ref(kind, name), "read record", errs.ErrNotFound, "")
	}
	err = json.Unmarshal(content, &rec)
	if kind == manifest.KindServer && len(rec.Status.Ports) > 0 && rec.Status.HostKeys == nil {
		rec.Status.HostKeys = []string{f.guest.hostKeyLine()}
	}
	return rec, err
}

func (f folder) List(ctx context.Context, kind manifest.Kind) ([]manifest.Record, error) {
	files, err := filepath.Glob(filepath.Join(f.dir, kind.Word()+"-*.json"))
	slices.Sort(files)
	var records []manifest.Record
	for _, file := range files {
		name := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(file), kind.Word()+"-"), ".json")
		rec, err := f.Get(ctx, kind, name)
		if err != nil {
			return nil, err
		}
		records = append(records, rec)
	}
	return records, err
}

func (f folder) Each(ctx context.Context, kind manifest.Kind, fn func(manifest.Record) error) error {
	records, err := f.List(ctx, kind)
	for _, rec := range records {
		if err := fn(rec); err != nil {
			return err
		}
	}
	return err
}

func (f folder) EachSummary(ctx context.Context, kind manifest.Kind, fn func([]byte) error) error {
	return f.Each(ctx, kind, func(rec manifest.Record) error {
		encoded, err := json.Marshal(rec)
		if err != nil {
			return err
		}
		return fn(encoded)
	})
}

func (f folder) Watch(ctx context.Context, kind manifest.Kind) (<-chan gateway.Event, error) {
	records, err := f.List(ctx, kind)
	events := make(chan gateway.Event, len(records)+1)
	for _, rec := range records {
		events <- gateway.Event{Type: gateway.Put, Record: rec}
	}
	events <- gateway.Event{Type: gateway.Synced}
	context.AfterFunc(ctx, func() { close(events) })
	return events, err
}

// runLogs reads logs/RUN.log.
type runLogs struct{ work string }

func (l runLogs) Open(_ context.Context, _ manifest.Record, run string, _ bool) (io.ReadCloser, error) {
	if run == "" {
		run = "latest"
	}
	f, err := os.Open(filepath.Join(l.work, "logs", run+".log"))
	if err != nil {
		return nil, fmt.Errorf("run %q: %w", run, errs.ErrNotFound)
	}
	return f, nil
}

// Runs has them by name, "latest" first.
func (l runLogs) Runs(context.Context, manifest.Record) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(l.work, "logs", "*.log"))
	var runs []string
	for _, f := range files {
		runs = append(runs, strings.TrimSuffix(filepath.Base(f), ".log"))
	}
	return runs, err
}
