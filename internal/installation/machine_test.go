package installation_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"burrow.dev/burrow/cli"
	"burrow.dev/burrow/internal/config"
	"burrow.dev/burrow/internal/devstacktest"
	"burrow.dev/burrow/internal/gateway"
	"burrow.dev/burrow/internal/supervise"
)

// cliEnv makes the test binary the burrow command; its `worker` is only a gateway,
// since what a host worker drives is tested elsewhere.
const cliEnv = "INSTALLATION_TEST_CLI"

func TestMain(m *testing.M) {
	if os.Getenv(cliEnv) == "" {
		os.Exit(withOwnAccounts(m))
	}
	if len(os.Args) > 1 && os.Args[1] == "worker" {
		os.Exit(serveGateway(os.Args[3]))
	}
	os.Exit(cli.Main(context.Background(), os.Args))
}

func serveGateway(file string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	var cfg config.Worker
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, &cfg)
	}
	if err == nil {
		err = gateway.NewServer(gateway.Deps{Info: gateway.Info{Host: cfg.Host.Name, Roles: []string{"control", "host"}}}).Serve(ctx, cfg.Gateway)
	}
	if err != nil {
		slog.Error("serve", "error", err)
		return 1
	}
	return 0
}

// machine is an installation that a test uses through the command line.
type machine struct {
	t     *testing.T
	dir   string
	ports []string
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("burrow up takes root")
	}
	devstack, err := devstacktest.Binary()
	require.NoError(t, err)
	m := &machine{t: t, dir: filepath.Join(t.TempDir(), "b")}
	m.ports = []string{"--devstack", devstack}
	for _, name := range []string{"temporal", "ui", "etcd"} {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		defer listener.Close()
		_, port, err := net.SplitHostPort(listener.Addr().String())
		require.NoError(t, err)
		m.ports = append(m.ports, "--"+name+"-port", port)
	}
	t.Cleanup(func() {
		_, _, err := m.burrow(context.Background(), "down")
		require.NoError(t, err)
	})
	return m
}

// burrow runs one command with this machine's data directory.
func (m *machine) burrow(ctx context.Context, args ...string) (output string, code int, err error) {
	self, err := os.Executable()
	if err != nil {
		return "", 0, err
	}
	command := exec.CommandContext(ctx, self, append(args, "--data-dir", m.dir)...)
	command.Env = append(os.Environ(), cliEnv+"=1")
	text, err := command.CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return string(text), exit.ExitCode(), nil
	}
	return string(text), 0, err
}

func (m *machine) must(want int, args ...string) string {
	m.t.Helper()
	output, code, err := m.burrow(m.t.Context(), args...)
	require.NoError(m.t, err)
	require.Equal(m.t, want, code, output)
	return output
}

func (m *machine) up(want int) string {
	m.t.Helper()
	return m.must(want, append([]string{"up", "--detach"}, m.ports...)...)
}

func (m *machine) states() map[string]supervise.State {
	m.t.Helper()
	list, err := supervise.States(m.dir)
	require.NoError(m.t, err)
	byName := map[string]supervise.State{}
	for _, state := range list {
		byName[state.Name] = state
	}
	return byName
}

func (m *machine) worker() config.Worker {
	m.t.Helper()
	var cfg config.Worker
	text, err := os.ReadFile(filepath.Join(m.dir, "worker.json"))
	require.NoError(m.t, err)
	require.NoError(m.t, json.Unmarshal(text, &cfg))
	return cfg
}
