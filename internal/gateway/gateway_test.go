package gateway

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"errors"
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
	"go.uber.org/goleak"
	"golang.org/x/crypto/ssh"

	"burrow.dev/burrow/internal/blob"
	"burrow.dev/burrow/internal/config"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

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

func (s *store) List(_ context.Context, kind manifest.Kind) ([]manifest.Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []manifest.Record
	for _, rec := range s.records {
		if rec.Kind == kind {
			found = append(found, rec)
		}
	}
	return found, nil
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

func TestInfoSaysWhoAnswers(t *testing.T) {
	d := deps(t, &store{})
	require.Equal(t, d.Info, connect(t, serve(t, d)).Info())
}

func TestRecordsAreReadWhole(t *testing.T) {
	records := &store{}
	for _, name := range []string{"db", "web"} {
		records.records = append(records.records, server(name, "127.0.0.1/8"))
	}
	c := connect(t, serve(t, deps(t, records)))

	rec, err := c.Get(t.Context(), manifest.KindServer, "db")
	require.NoError(t, err)
	require.Equal(t, records.records[0], rec)

	all, err := c.List(t.Context(), manifest.KindServer)
	require.NoError(t, err)
	require.Equal(t, records.records, all)

	none, err := c.List(t.Context(), manifest.KindVolume)
	require.NoError(t, err)
	require.Empty(t, none)
}

func TestAnErrorKeepsItsNameCauseAndNextStepOverTheWire(t *testing.T) {
	c := connect(t, serve(t, deps(t, &store{})))
	_, err := c.Get(t.Context(), manifest.KindServer, "db")
	require.ErrorIs(t, err, errs.ErrNotFound)
	require.EqualError(t, err, "server/db: read: not found; list what there is: burrow get")
	require.Equal(t, errs.Permanent, errs.ClassOf(err))
}

func TestAPanicIsOneFailedCall(t *testing.T) {
	c := connect(t, serve(t, deps(t, &store{})))
	_, err := c.Get(t.Context(), manifest.KindServer, "panic")
	require.ErrorContains(t, err, "its log has the details")
	require.NotContains(t, err.Error(), "as the test asked")
	_, err = c.List(t.Context(), manifest.KindServer)
	require.NoError(t, err, "the gateway lives on")
}

func TestAMissingDependencyIsNamed(t *testing.T) {
	c := connect(t, serve(t, Deps{Records: &store{records: []manifest.Record{server("db")}}}))
	_, err := c.Console(t.Context(), "db")
	require.ErrorContains(t, err, "this worker has no consoles")
	_, err = c.DialServer(t.Context(), "db", 22)
	require.ErrorContains(t, err, "this worker has no networks")
	_, err = c.AgentConn(t.Context(), "db")
	require.ErrorContains(t, err, "this worker has no management keys")
	require.ErrorContains(t, c.Logs(t.Context(), "db", "", false, io.Discard), "this worker has no run logs")
}

func TestAWatchGivesWhatThereIsThenChanges(t *testing.T) {
	records := &store{records: []manifest.Record{server("db"), server("web")}}
	c := connect(t, serve(t, deps(t, records)))
	var seen []string
	done := errors.New("seen enough")
	err := c.Watch(t.Context(), manifest.KindServer, "db", func(e Event) error {
		seen = append(seen, string(e.Type)+" "+e.Record.Metadata.Name+" "+string(e.Record.Status.Phase))
		switch e.Type {
		case Synced:
			stopped := server("db")
			stopped.Status.Phase = manifest.PhaseStopped
			records.send(Event{Put, server("web")})
			records.send(Event{Put, stopped})
		case Put:
			if e.Record.Status.Phase == manifest.PhaseStopped {
				records.send(Event{Delete, e.Record})
			}
		case Delete:
			return done
		}
		return nil
	})
	require.ErrorIs(t, err, done)
	require.Equal(t, []string{"put db Running", "synced  ", "put db Stopped", "delete db Stopped"}, seen)
}

func TestASlowWatcherGetsTheLatestStateAndHoldsNobodyBack(t *testing.T) {
	records := &store{}
	c := connect(t, serve(t, deps(t, records)))
	const changes = 5_000
	padding := strings.Repeat("x", 10_000) // together far more than flow control lets through
	got := 0
	done := errors.New("latest seen")
	err := c.Watch(t.Context(), manifest.KindServer, "", func(e Event) error {
		if e.Type == Synced {
			for i := 1; i <= changes; i++ {
				rec := server("db")
				rec.Metadata.Generation, rec.Status.Message = int64(i), padding
				records.send(Event{Put, rec})
			}
			require.Eventually(t, func() bool { // while this reader stands still
				records.mu.Lock()
				defer records.mu.Unlock()
				return len(records.watchers[0]) == 0
			}, soon, time.Millisecond)
			return nil
		}
		got++
		if e.Record.Metadata.Generation == changes {
			return done
		}
		return nil
	})
	require.ErrorIs(t, err, done)
	require.Less(t, got, changes, "states in between were left out")
}

func TestAWatchEndsWithItsContextAndWithTheGateway(t *testing.T) {
	records := &store{}
	dir, err := os.MkdirTemp("", "gw")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	cfg := config.Gateway{Socket: filepath.Join(dir, "s")}
	stop := start(t, deps(t, records), cfg)
	c := connect(t, cfg)

	ctx, cancel := context.WithCancel(t.Context())
	require.ErrorIs(t, c.Watch(ctx, "", "", func(Event) error { cancel(); return nil }), context.Canceled)

	err = c.Watch(t.Context(), "", "", func(Event) error { go stop(); return nil })
	require.ErrorIs(t, err, errs.ErrUnavailable)
	require.ErrorContains(t, err, "burrow status")
}

func TestNobodyThereIsAnErrorThatSaysWhatToDo(t *testing.T) {
	dir := t.TempDir()
	_, err := Dial(t.Context(), config.Gateway{Socket: filepath.Join(dir, "none")})
	require.ErrorIs(t, err, errs.ErrUnavailable)
	require.EqualError(t, err, "gateway at "+filepath.Join(dir, "none")+": connect: unavailable: nobody listens there; is burrow up? burrow status")

	_, err = Dial(t.Context(), config.Gateway{})
	require.ErrorContains(t, err, "client.json")
}
