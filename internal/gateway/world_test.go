package gateway

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"burrow.dev/burrow/internal/blob"
	"burrow.dev/burrow/internal/config"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
)

// soon is how long a test waits for what must come at once.
const soon = 10 * time.Second

// store is a small Records in memory.
type store struct {
	mu       sync.Mutex
	records  []manifest.Record
	watchers []chan Event
}

func (s *store) Get(_ context.Context, kind manifest.Kind, name string) (manifest.Record, error) {
	if name == "panic" {
		panic("as the test asked")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, rec := range s.records {
		if rec.Kind == kind && rec.Metadata.Name == name {
			return rec, nil
		}
	}
	return manifest.Record{}, errs.NewPermanent(strings.ToLower(string(kind))+"/"+name, "read", errs.ErrNotFound, "list what there is: burrow get")
}

func (s *store) Each(_ context.Context, kind manifest.Kind, fn func(manifest.Record) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, rec := range s.records {
		if rec.Kind != kind {
			continue
		}
		if err := fn(rec); err != nil {
			return err
		}
	}
	return nil
}

func (s *store) EachSummary(ctx context.Context, kind manifest.Kind, fn func([]byte) error) error {
	return s.Each(ctx, kind, func(rec manifest.Record) error {
		encoded, err := json.Marshal(rec)
		if err != nil {
			return err
		}
		return fn(encoded)
	})
}

func (s *store) Watch(ctx context.Context, _ manifest.Kind) (<-chan Event, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	in, out := make(chan Event, 10_000), make(chan Event)
	for _, rec := range s.records {
		in <- Event{Put, rec}
	}
	in <- Event{Type: Synced}
	s.watchers = append(s.watchers, in)
	go func() {
		defer close(out)
		for {
			select {
			case e := <-in:
				select {
				case out <- e:
				case <-ctx.Done():
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	return out, nil
}

func (s *store) send(e Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.watchers {
		w <- e
	}
}

func server(name string, addresses ...string) manifest.Record {
	rec := manifest.Record{APIVersion: manifest.APIVersion, Kind: manifest.KindServer, Spec: json.RawMessage(`{}`)}
	rec.Metadata.Name, rec.Metadata.UID = name, "uid-of-"+name
	rec.Status.Phase, rec.Status.Host = manifest.PhaseRunning, "kvm1"
	for i, a := range addresses {
		rec.Status.Ports = append(rec.Status.Ports, manifest.Port{Name: "net-0", Index: i, Network: "net", Addresses: []string{a}})
	}
	return rec
}

// tcpDialer reaches the addresses of the test on loopback, in network "net" only.
type tcpDialer struct{}

func (tcpDialer) DialNetwork(ctx context.Context, network, address string) (net.Conn, error) {
	if network != "net" {
		return nil, errs.Reason("no such network %q", network)
	}
	var d net.Dialer
	return d.DialContext(ctx, "tcp", address)
}

// key is the management key of every server in these tests.
type key struct{ signer ssh.Signer }

func (k key) Management(_ context.Context, uid string) (ssh.Signer, error) {
	if uid != "uid-of-db" {
		return nil, errs.ErrNotFound
	}
	return k.signer, nil
}

func newKey(t *testing.T) key {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	signer, err := ssh.NewSignerFromKey(private)
	require.NoError(t, err)
	return key{signer}
}

type consoles func(uid string) (io.ReadWriteCloser, error)

func (c consoles) Console(_ context.Context, uid string) (io.ReadWriteCloser, error) { return c(uid) }

type runLogs func(ctx context.Context, rec manifest.Record, run string, follow bool) (io.ReadCloser, error)

func (l runLogs) Open(ctx context.Context, rec manifest.Record, run string, follow bool) (io.ReadCloser, error) {
	return l(ctx, rec, run, follow)
}

func (l runLogs) Runs(ctx context.Context, rec manifest.Record) ([]string, error) {
	if _, err := l(ctx, rec, "", false); err != nil {
		return nil, nil
	}
	return []string{"second", "first"}, nil
}

// deps are real where the gateway's own work is: sockets, blobs, TCP.
func deps(t *testing.T, records *store) Deps {
	t.Helper()
	blobs, err := blob.Open(t.Context(), "file://"+t.TempDir())
	require.NoError(t, err)
	t.Cleanup(func() { _ = blobs.Close() })
	return Deps{
		Info:    Info{Version: "v1.2.3", Host: "kvm1", Accelerator: "tcg", AcceleratorReason: "no /dev/kvm", Roles: []string{"control", "host"}, Since: time.UnixMilli(1_700_000_000_000)},
		Records: records, Blobs: blobs, Dialer: tcpDialer{}, Keys: newKey(t),
		Log: slog.New(slog.DiscardHandler),
	}
}

// serve runs a server on a socket of its own and gives what clients need.
func serve(t *testing.T, d Deps) config.Gateway {
	t.Helper()
	dir, err := os.MkdirTemp("", "gw") // t.TempDir is too long for a socket
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	cfg := config.Gateway{Socket: filepath.Join(dir, "gateway.sock")}
	start(t, d, cfg)
	return cfg
}

func start(t *testing.T, d Deps, cfg config.Gateway) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- NewServer(d).Serve(ctx, cfg) }()
	stop = sync.OnceFunc(func() {
		cancel()
		require.NoError(t, <-done)
	})
	t.Cleanup(stop)
	require.Eventually(t, func() bool {
		c, err := Dial(t.Context(), cfg)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	}, soon, 5*time.Millisecond)
	return stop
}

func connect(t *testing.T, cfg config.Gateway) *Client {
	t.Helper()
	c, err := Dial(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}
