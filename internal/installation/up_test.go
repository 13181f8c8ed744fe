package installation_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.temporal.io/api/enums/v1"

	"burrow.dev/burrow/internal/config"
	"burrow.dev/burrow/internal/supervise"
	"burrow.dev/burrow/internal/temporalclient"
)

func TestUpStatusDown(t *testing.T) {
	m := newMachine(t)
	require.Contains(t, m.must(1, "status"), "never started here")

	output := m.up(0)
	require.Contains(t, output, "devstack: ready after")
	require.Contains(t, output, "worker: ready after")
	require.Regexp(t, regexp.MustCompile(`burrow is up \(\d+\.\d s\)`), output)

	status := m.must(0, "status")
	require.Regexp(t, regexp.MustCompile(`devstack +\d+ .* yes +Temporal 127\.0\.0\.1:\d+, etcd https://`), status)
	require.Regexp(t, regexp.MustCompile(`worker +\d+ .* yes +gateway `), status)

	refused := m.up(4)
	require.Contains(t, refused, "burrow up runs as pid")
	require.Contains(t, refused, "next: ")

	states := m.states()
	require.Contains(t, m.must(0, "down"), "stopped burrow up (pid ")
	require.False(t, states["devstack"].Alive())
	require.False(t, states["worker"].Alive())
	require.NoFileExists(t, filepath.Join(m.dir, "gateway.sock"))
	require.Contains(t, m.must(1, "status"), "does not run")
	require.Contains(t, m.must(0, "down"), "nothing runs")
}

func TestLoopbackAsksForACertificateAndEtcdForTheWorkers(t *testing.T) {
	m := newMachine(t)
	m.up(0)
	cfg := m.worker()
	quiet := slog.New(slog.DiscardHandler)

	plain := cfg.Temporal
	plain.TLS = nil
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	_, err := temporalclient.Dial(ctx, plain, quiet)
	require.Error(t, err, "Temporal without a certificate")
	c, err := temporalclient.Dial(t.Context(), cfg.Temporal, quiet)
	require.NoError(t, err)
	c.Close()

	require.NoError(t, askEtcd(t, cfg.Etcd.Endpoints, cfg.Etcd.TLS))
	asClient := *cfg.Etcd.TLS
	asClient.Cert, asClient.Key = filepath.Join(m.dir, "tls", "client.pem"), filepath.Join(m.dir, "tls", "client-key.pem")
	require.Error(t, askEtcd(t, cfg.Etcd.Endpoints, &asClient), "etcd with the command line's certificate")
}

func askEtcd(t *testing.T, endpoints []string, files *config.TLS) error {
	t.Helper()
	credentials, err := files.Client()
	require.NoError(t, err)
	c, err := clientv3.New(clientv3.Config{Endpoints: endpoints, TLS: credentials})
	require.NoError(t, err)
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	_, err = c.Get(ctx, "/x")
	return err
}

func TestTheWebUIShowsAndDoesNotTouch(t *testing.T) {
	m := newMachine(t)
	m.up(0)
	var client config.Client
	text, err := os.ReadFile(filepath.Join(m.dir, "client.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &client))

	c, err := temporalclient.Dial(t.Context(), client.Temporal, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	defer c.Close()
	_, err = startIdle(t.Context(), c, "idle")
	require.NoError(t, err)

	answer, err := http.Get(client.WebUI + "/api/v1/namespaces/burrow/workflows/idle")
	require.NoError(t, err)
	shown, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	answer.Body.Close()
	require.Equal(t, http.StatusOK, answer.StatusCode)
	require.Contains(t, string(shown), "WORKFLOW_EXECUTION_STATUS_RUNNING")

	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, client.WebUI+"/api/v1/namespaces/burrow/workflows/idle/terminate", strings.NewReader("{}"))
	require.NoError(t, err)
	request.Header.Set("Content-Type", "application/json")
	for _, cookie := range answer.Cookies() { // as a browser would, so that the refusal is not about the token
		request.AddCookie(cookie)
		request.Header.Set("X-CSRF-Token", cookie.Value)
	}
	answer, err = http.DefaultClient.Do(request)
	require.NoError(t, err)
	answer.Body.Close()
	require.Equal(t, http.StatusMethodNotAllowed, answer.StatusCode)
	described, err := c.DescribeWorkflow(t.Context(), "idle", "")
	require.NoError(t, err)
	require.Equal(t, enums.WORKFLOW_EXECUTION_STATUS_RUNNING, described.Status)
}

// awaitUnheld waits until the lock of a killed supervisor is free: its last thread lets it
// go a moment after its first is dead.
func (m *machine) awaitUnheld() {
	m.t.Helper()
	require.Eventually(m.t, func() bool {
		_, held, err := supervise.HolderOf(m.dir)
		return err == nil && !held
	}, 10*time.Second, 5*time.Millisecond)
}

func TestAKilledUpIsFollowedByOneThatAdopts(t *testing.T) {
	m := newMachine(t)
	m.up(0)
	before := m.states()
	holder, held, err := supervise.HolderOf(m.dir)
	require.NoError(t, err)
	require.True(t, held)
	require.NoError(t, syscall.Kill(holder.PID, syscall.SIGKILL))
	m.awaitUnheld()
	require.Contains(t, m.must(1, "status"), "sudo burrow up --detach")

	require.Contains(t, m.up(0), "adopted")
	after := m.states()
	require.Equal(t, before["devstack"].Identity, after["devstack"].Identity)
	require.Equal(t, before["worker"].Identity, after["worker"].Identity)
}

func TestNothingAcknowledgedIsLostWhenEverythingIsKilled(t *testing.T) {
	m := newMachine(t)
	m.up(0)
	cfg := m.worker()
	credentials, err := cfg.Etcd.TLS.Client()
	require.NoError(t, err)
	store, err := clientv3.New(clientv3.Config{Endpoints: cfg.Etcd.Endpoints, TLS: credentials})
	require.NoError(t, err)
	defer store.Close()
	_, err = store.Put(t.Context(), "/k", "v")
	require.NoError(t, err)
	quiet := slog.New(slog.DiscardHandler)
	c, err := temporalclient.Dial(t.Context(), cfg.Temporal, quiet)
	require.NoError(t, err)
	run, err := startIdle(t.Context(), c, "server/db")
	require.NoError(t, err)
	c.Close()

	holder, _, err := supervise.HolderOf(m.dir)
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(holder.PID, syscall.SIGKILL))
	for _, state := range m.states() {
		require.NoError(t, syscall.Kill(state.PID, syscall.SIGKILL))
	}
	m.awaitUnheld()
	m.up(0)

	got, err := store.Get(t.Context(), "/k")
	require.NoError(t, err)
	require.Len(t, got.Kvs, 1)
	c, err = temporalclient.Dial(t.Context(), cfg.Temporal, quiet)
	require.NoError(t, err)
	defer c.Close()
	described, err := c.DescribeWorkflow(t.Context(), "server/db", "")
	require.NoError(t, err)
	require.Equal(t, run, described.WorkflowExecution.RunID)
}

func TestATakenPortIsNamedWithItsHolderAndNothingIsLeft(t *testing.T) {
	m := newMachine(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	require.NoError(t, err)
	for i := range m.ports {
		if m.ports[i] == "--ui-port" {
			m.ports[i+1] = port
		}
	}
	output := m.up(1)
	require.Contains(t, output, "127.0.0.1:"+port)
	require.Contains(t, output, fmt.Sprintf("(pid %d)", os.Getpid()))
	require.Contains(t, output, "--ui-port")
	require.Empty(t, m.states())
	_, held, err := supervise.HolderOf(m.dir)
	require.NoError(t, err)
	require.False(t, held)
}
