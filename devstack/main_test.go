package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"burrow.dev/devstack/internal/readiness"
)

// programEnv makes the test binary the program.
const programEnv = "DEVSTACK_TEST_PROGRAM"

// patience is long because other builds may run beside the test.
const patience = time.Minute

func TestMain(m *testing.M) {
	if os.Getenv(programEnv) != "" {
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		code := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
		stop()
		os.Exit(code)
	}
	os.Exit(m.Run())
}

// program is a running burrow-devstack.
type program struct {
	t       *testing.T
	command *exec.Cmd
	report  readiness.Report
	stderr  bytes.Buffer
}

func startProgram(t *testing.T, args ...string) *program {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	p := &program{t: t}
	file := filepath.Join(t.TempDir(), "ready.json")
	p.command = exec.Command(self, append(args, "--ready-file", file)...)
	p.command.Env = append(os.Environ(), programEnv+"=1")
	p.command.Stderr = &p.stderr
	require.NoError(t, p.command.Start())
	t.Cleanup(func() {
		_ = p.command.Process.Kill()
		_ = p.command.Wait()
	})
	require.Eventually(t, func() bool {
		text, err := os.ReadFile(file)
		return err == nil && json.Unmarshal(text, &p.report) == nil
	}, patience, 10*time.Millisecond)
	require.Equal(t, p.command.Process.Pid, p.report.PID)
	return p
}

func (p *program) kill() {
	require.NoError(p.t, p.command.Process.Kill())
	_ = p.command.Wait()
}

func (p *program) stop() {
	p.t.Helper()
	require.NoError(p.t, p.command.Process.Signal(syscall.SIGTERM))
	require.NoError(p.t, p.command.Wait(), p.stderr.String())
}

func (p *program) temporal() client.Client {
	p.t.Helper()
	c, err := client.Dial(client.Options{HostPort: p.report.TemporalAddress, Namespace: p.report.Namespace})
	require.NoError(p.t, err)
	p.t.Cleanup(c.Close)
	return c
}

func (p *program) etcd() *clientv3.Client {
	p.t.Helper()
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{p.report.EtcdEndpoint}})
	require.NoError(p.t, err)
	p.t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestWhatWasAcknowledgedIsThereAfterKills(t *testing.T) {
	dir := t.TempDir()
	serve := []string{"serve", "--data-dir", dir, "--temporal-port", "0", "--etcd-port", "0", "--ui-port", "0"}
	for round := range 4 {
		p := startProgram(t, serve...)
		store, workflows := p.etcd(), p.temporal()
		for earlier := range round {
			got, err := store.Get(t.Context(), fmt.Sprint("/k", earlier))
			require.NoError(t, err)
			require.Len(t, got.Kvs, 1)
			_, err = workflows.DescribeWorkflowExecution(t.Context(), fmt.Sprint("server/", earlier), "")
			require.NoError(t, err)
		}
		_, err := store.Put(t.Context(), fmt.Sprint("/k", round), "v")
		require.NoError(t, err)
		_, err = workflows.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: fmt.Sprint("server/", round), TaskQueue: "nobody"}, "Idle")
		require.NoError(t, err)
		p.kill()
	}
	recorded, err := os.ReadFile(filepath.Join(dir, "temporal", "schema.json"))
	require.NoError(t, err)
	require.Contains(t, string(recorded), `"temporalServer"`)
	info, err := os.Stat(filepath.Join(dir, "temporal"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
}

func TestNamespaceIsKeptNinetyDays(t *testing.T) {
	p := startProgram(t, "serve", "--test", "--data-dir", t.TempDir())
	described, err := p.temporal().WorkflowService().DescribeNamespace(t.Context(), &workflowservice.DescribeNamespaceRequest{Namespace: "burrow"})
	require.NoError(t, err)
	require.Equal(t, 90*24*time.Hour, described.GetConfig().GetWorkflowExecutionRetentionTtl().AsDuration())
	p.stop()
}

func TestStopIsOrderedAlsoWithWorkersPolling(t *testing.T) {
	p := startProgram(t, "serve", "--test", "--data-dir", t.TempDir(), "--ui-port", "0")
	w := worker.New(p.temporal(), "queue", worker.Options{})
	w.RegisterWorkflowWithOptions(func(workflow.Context) error { return nil }, workflow.RegisterOptions{Name: "Nothing"})
	require.NoError(t, w.Start())
	defer w.Stop()
	run, err := p.temporal().ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{TaskQueue: "queue"}, "Nothing")
	require.NoError(t, err)
	require.NoError(t, run.Get(t.Context(), nil))
	began := time.Now()
	p.stop()
	require.Less(t, time.Since(began), 15*time.Second)
}

func TestTakenPortsAreAllNamedWithTheirHolder(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	require.NoError(t, err)
	var stderr bytes.Buffer
	code := run(t.Context(), []string{"serve", "--data-dir", t.TempDir(), "--ui-port", port, "--etcd-port", port, "--temporal-port", "0"}, strings.NewReader(""), &stderr, &stderr)
	require.Equal(t, exitPortTaken, code)
	for _, word := range []string{"Temporal Web UI", "--ui-port", "etcd", "--etcd-port", fmt.Sprintf("(pid %d)", os.Getpid())} {
		require.Contains(t, stderr.String(), word)
	}
}

func TestItEndsWithWhoHoldsItsInput(t *testing.T) {
	input, held, err := os.Pipe()
	require.NoError(t, err)
	self, err := os.Executable()
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "ready.json")
	command := exec.Command(self, "etcd", "--data-dir", t.TempDir(), "--listen-client", "http://127.0.0.1:0", "--ready-file", file, "--until-stdin-closes")
	command.Env = append(os.Environ(), programEnv+"=1")
	command.Stdin = input
	require.NoError(t, command.Start())
	require.NoError(t, input.Close())
	require.Eventually(t, func() bool { _, err := os.Stat(file); return err == nil }, patience, 10*time.Millisecond)
	require.NoError(t, held.Close())
	require.NoError(t, command.Wait())
	require.NoFileExists(t, file)
}

func TestMemberAloneDoesNotBecomeOneOfSeveral(t *testing.T) {
	dir := t.TempDir()
	alone := startProgram(t, "etcd", "--data-dir", dir, "--listen-client", "http://127.0.0.1:0")
	_, err := alone.etcd().Put(t.Context(), "/k", "v")
	require.NoError(t, err)
	alone.stop()
	var stderr bytes.Buffer
	self, err := os.Executable()
	require.NoError(t, err)
	command := exec.Command(self, "etcd", "--data-dir", dir, "--listen-client", "http://127.0.0.1:0", "--name", "a",
		"--initial-cluster", "a=http://127.0.0.1:31380,b=http://127.0.0.1:31381,c=http://127.0.0.1:31382")
	command.Env, command.Stderr = append(os.Environ(), programEnv+"=1"), &stderr
	require.Error(t, command.Run())
	require.Contains(t, stderr.String(), "the data belong to another cluster")

	again := startProgram(t, "etcd", "--data-dir", dir, "--listen-client", "http://127.0.0.1:0")
	got, err := again.etcd().Get(t.Context(), "/k")
	require.NoError(t, err)
	require.Len(t, got.Kvs, 1)
	again.stop()
}

func TestStartDevServesTheSDKsTestHelpers(t *testing.T) {
	p := startProgram(t, "server", "start-dev", "--ip", "127.0.0.1", "--port", "0", "--namespace", "mine", "--headless",
		"--dynamic-config-value", "frontend.enableServerVersionCheck=false", "--log-level", "warn", "--log-format", "pretty", "--search-attribute", "Colour=Keyword")
	require.Equal(t, "mine", p.report.Namespace)
	require.Empty(t, p.report.EtcdEndpoint)
	_, err := p.temporal().WorkflowService().DescribeNamespace(t.Context(), &workflowservice.DescribeNamespaceRequest{Namespace: "default"})
	require.NoError(t, err)
	p.stop()
}

func TestWrongUsageIsSaidAndStartsNothing(t *testing.T) {
	for name, args := range map[string][]string{
		"--data-dir is required":       {"serve"},
		"unknown command":              {"start"},
		"want http://":                 {"etcd", "--data-dir", t.TempDir(), "--listen-client", "ftp://127.0.0.1:0"},
		"NAME=URL":                     {"etcd", "--data-dir", t.TempDir(), "--name", "a", "--initial-cluster", "a"},
		"named twice":                  {"etcd", "--data-dir", t.TempDir(), "--name", "a", "--initial-cluster", "a=http://127.0.0.1:1,a=http://127.0.0.1:2"},
		"want one of the names":        {"etcd", "--data-dir", t.TempDir(), "--name", "b", "--initial-cluster", "a=http://127.0.0.1:1"},
		"are for members":              {"etcd", "--data-dir", t.TempDir(), "--name", "b"},
		"0 is none":                    {"etcd", "--data-dir", t.TempDir(), "--name", "a", "--initial-cluster", "a=http://127.0.0.1:0"},
		"unexpected argument":          {"etcd", "--data-dir", t.TempDir(), "x"},
		"database snapshot: want":      {"database", "snapshot", "--file", "x"},
		"want KEY=VALUE":               {"server", "start-dev", "--dynamic-config-value", "x"},
		"want NAME=TYPE":               {"server", "start-dev", "--search-attribute", "x"},
		`search attribute type "Blob"`: {"server", "start-dev", "--search-attribute", "x=Blob"},
	} {
		var stderr bytes.Buffer
		require.Equal(t, exitUsage, run(t.Context(), args, strings.NewReader(""), &stderr, &stderr), name)
		require.Contains(t, stderr.String(), name)
	}
}
