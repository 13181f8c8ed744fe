package devstacktest

import (
	"context"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
)

// Etcd starts an empty etcd (without fsync) for one test and gives its client URL.
func Etcd(t testing.TB) string {
	t.Helper()
	return StartEtcd(t).EtcdEndpoint
}

// Member is an etcd that a fault test may kill and start again.
type Member struct {
	*Process
	t      testing.TB
	folder string
}

// StartEtcd starts an empty etcd; it is stopped when the test ends.
func StartEtcd(t testing.TB) *Member {
	t.Helper()
	m := &Member{t: t, folder: t.TempDir()}
	m.start("http://127.0.0.1:0")
	t.Cleanup(func() { require.NoError(t, m.Stop()) })
	return m
}

// Restart starts the member again, after a Kill or Stop, on the same port with the same data.
func (m *Member) Restart() {
	m.t.Helper()
	m.start(m.EtcdEndpoint)
}

func (m *Member) start(listen string) {
	m.t.Helper()
	process, err := Start(context.WithoutCancel(m.t.Context()), "etcd", "--data-dir", m.folder, "--listen-client", listen, "--unsafe-no-fsync")
	require.NoError(m.t, err)
	m.Process = process
}

// StackHandle is a running Temporal and etcd with a client.
type StackHandle struct {
	TemporalAddress string
	Namespace       string
	EtcdEndpoint    string
	// Client is closed when the test ends.
	Client client.Client
	// Process, for fault tests.
	Process *Process
}

// Stack starts an empty Temporal (in memory) and etcd for one test; args are added
// to the command line ("--ui-port", "0" for the Web UI).
func Stack(t testing.TB, args ...string) StackHandle {
	t.Helper()
	process, err := Start(context.WithoutCancel(t.Context()), append([]string{"serve", "--test", "--data-dir", t.TempDir()}, args...)...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, process.Stop()) })
	c, err := client.DialContext(t.Context(), client.Options{
		HostPort:  process.TemporalAddress,
		Namespace: process.Namespace,
		Logger:    sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler)),
	})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return StackHandle{
		TemporalAddress: process.TemporalAddress,
		Namespace:       process.Namespace,
		EtcdEndpoint:    process.EtcdEndpoint,
		Client:          c,
		Process:         process,
	}
}
