package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"burrow.dev/burrow/internal/config"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/gateway"
	"burrow.dev/burrow/manifest"
)

// soon is how long a test waits for what must come at once.
const soon = 10 * time.Second

// world is a gateway with records in memory, and how to run commands against it.
type world struct {
	t      *testing.T
	config string // path of client.json
	socket config.Gateway
	deps   gateway.Deps

	mu      sync.Mutex
	records map[string]manifest.Record
	events  []chan gateway.Event
	stop    func()
}

func newWorld(t *testing.T) *world {
	t.Helper()
	dir, err := os.MkdirTemp("", "cli") // t.TempDir is too long for a socket
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	w := &world{t: t, config: filepath.Join(dir, "client.json"), socket: config.Gateway{Socket: filepath.Join(dir, "gw")}, records: map[string]manifest.Record{}}
	encoded, err := json.Marshal(config.Client{Gateway: w.socket})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(w.config, encoded, 0o600))
	w.deps = gateway.Deps{Records: w, Log: slog.New(slog.DiscardHandler), Info: gateway.Info{Version: version(), Host: "kvm1"}}
	return w
}

func (w *world) start() {
	w.t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.t.Context()))
	done := make(chan error, 1)
	go func() { done <- gateway.NewServer(w.deps).Serve(ctx, w.socket) }()
	w.stop = sync.OnceFunc(func() {
		cancel()
		require.NoError(w.t, <-done)
	})
	w.t.Cleanup(w.stop)
	require.Eventually(w.t, func() bool {
		c, err := gateway.Dial(w.t.Context(), w.socket)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	}, soon, 5*time.Millisecond)
}

func (w *world) Get(_ context.Context, kind manifest.Kind, name string) (manifest.Record, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	rec, ok := w.records[manifest.Ref(kind, name)]
	if !ok {
		return rec, errs.NewPermanent(manifest.Ref(kind, name), "read", errs.ErrNotFound, "")
	}
	return rec, nil
}

func (w *world) Each(_ context.Context, kind manifest.Kind, fn func(manifest.Record) error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, rec := range w.records {
		if rec.Kind != kind {
			continue
		}
		if err := fn(rec); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) EachSummary(ctx context.Context, kind manifest.Kind, fn func([]byte) error) error {
	return w.Each(ctx, kind, func(rec manifest.Record) error {
		encoded, err := json.Marshal(rec)
		if err != nil {
			return err
		}
		return fn(encoded)
	})
}

func (w *world) Watch(ctx context.Context, _ manifest.Kind) (<-chan gateway.Event, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	in, out := make(chan gateway.Event, 100), make(chan gateway.Event)
	for _, rec := range w.records {
		in <- gateway.Event{Type: gateway.Put, Record: rec}
	}
	in <- gateway.Event{Type: gateway.Synced}
	w.events = append(w.events, in)
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

// put stores a server, and tells the watchers.
func (w *world) put(name string, phase manifest.Phase) {
	w.mu.Lock()
	defer w.mu.Unlock()
	rec := manifest.Record{APIVersion: manifest.APIVersion, Kind: manifest.KindServer, Spec: json.RawMessage(`{}`)}
	rec.Metadata.Name, rec.Metadata.UID = name, "uid-"+name
	rec.Metadata.ResourceVersion = w.records["server/"+name].Metadata.ResourceVersion + 1
	rec.Status.Phase = phase
	w.records["server/"+name] = rec
	for _, c := range w.events {
		c <- gateway.Event{Type: gateway.Put, Record: rec}
	}
}

func (w *world) remove(name string, tell bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	rec := w.records["server/"+name]
	delete(w.records, "server/"+name)
	for _, c := range w.events {
		if tell {
			c <- gateway.Event{Type: gateway.Delete, Record: rec}
		}
	}
}

// burrow runs a command to its end.
func (w *world) burrow(ctx context.Context, in io.Reader, out, errOut io.Writer, args ...string) int {
	return run(ctx, append([]string{"burrow", "--config", w.config}, args...), in, out, errOut)
}

// screenText is a writer that a test may read while it is written to.
type screenText struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *screenText) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *screenText) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func (s *screenText) eventually(t *testing.T, want string) {
	t.Helper()
	require.Eventually(t, func() bool { return strings.Contains(s.String(), want) }, soon, 5*time.Millisecond, "no %q in what was printed", want)
}
