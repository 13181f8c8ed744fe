package scripts

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
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
	"golang.org/x/crypto/ssh"

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
		Cmds:  map[string]func(*testscript.TestScript, bool, []string){"exits": exits, "appears": appears, "terminate": terminate},
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
	short, err := os.MkdirTemp("", "bw") // $WORK is too long for a socket
	if err != nil {
		return err
	}
	env.Defer(func() { _ = os.RemoveAll(short) })
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
	server := gateway.NewServer(gateway.Deps{
		Info:    gateway.Info{Version: "v9.9.9", Host: "kvm1", Accelerator: "tcg", AcceleratorReason: "there is no /dev/kvm", Since: time.Now()},
		Records: records, Blobs: blobs, Dialer: guest, Keys: guest, Logs: runLogs{env.Getenv("WORK")},
		Log: slog.New(slog.DiscardHandler),
	})
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
		return rec, errs.NewPermanent(manifest.Ref(kind, name), "read", errs.ErrNotFound, "list what there is: burrow get "+kind.Word())
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
		return nil, errs.NewPermanent("server/db", "open the log of run "+run, errs.ErrNotFound, "leave --run out for the latest run")
	}
	return f, nil
}

// guest is a real SSH server on loopback that stands for every server of a script.
type guest struct {
	host, management ssh.Signer
	address          string
	waiting          marker
}

// marker is a file that tells a script how far the guest is.
type marker string

func (m marker) touch() error { return os.WriteFile(string(m), nil, 0o600) }

func startGuest(env *testscript.Env) (*guest, error) {
	g := &guest{waiting: marker(filepath.Join(env.Getenv("WORK"), "waiting"))}
	for _, key := range []*ssh.Signer{&g.host, &g.management} {
		_, private, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			return nil, err
		}
		if *key, err = ssh.NewSignerFromKey(private); err != nil {
			return nil, err
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	g.address = l.Addr().String()
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { g.serve(conn) })
		}
	})
	env.Defer(func() {
		_ = l.Close()
		serving.Wait()
	})
	return g, nil
}

func (g *guest) hostKeyLine() string {
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(g.host.PublicKey())))
}

// DialNetwork reaches the guest by its address on the network, whatever its port.
func (g *guest) DialNetwork(ctx context.Context, network, address string) (net.Conn, error) {
	if network != "db-net" || !strings.HasPrefix(address, "10.0.0.2:") {
		return nil, fmt.Errorf("%s is not on network %s", address, network)
	}
	var d net.Dialer
	return d.DialContext(ctx, "tcp", g.address)
}

// Management gives the key that the guest lets in.
func (g *guest) Management(context.Context, string) (ssh.Signer, error) { return g.management, nil }

// serve lets the management key in as "debian", and answers each command with its text.
func (g *guest) serve(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	cfg := &ssh.ServerConfig{PublicKeyCallback: func(meta ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
		if meta.User() == "debian" && string(key.Marshal()) == string(g.management.PublicKey().Marshal()) {
			return nil, nil
		}
		return nil, fmt.Errorf("%s may not log in with that key", meta.User())
	}}
	cfg.AddHostKey(g.host)
	sc, channels, requests, err := ssh.NewServerConn(conn, cfg)
	if err != nil {
		return
	}
	defer func() { _ = sc.Close() }()
	go ssh.DiscardRequests(requests)
	for offered := range channels {
		channel, requests, err := offered.Accept()
		if err != nil {
			return
		}
		for req := range requests {
			if req.Type != "exec" {
				_ = req.Reply(req.Type == "env", nil)
				continue
			}
			_ = req.Reply(true, nil)
			var command struct{ Text string }
			_ = ssh.Unmarshal(req.Payload, &command)
			_, _ = fmt.Fprintf(channel, "%s ran: %s\n", sc.User(), command.Text)
			if command.Text == "wait" {
				_ = g.waiting.touch()
				continue // until the client goes
			}
			status := struct{ Code uint32 }{0}
			if code, ok := strings.CutPrefix(command.Text, "exit "); ok {
				n, _ := strconv.Atoi(code)
				status.Code = uint32(n)
			}
			_, _ = channel.SendRequest("exit-status", false, ssh.Marshal(status))
			_ = channel.Close()
		}
	}
}
