package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
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

func (w *world) List(_ context.Context, kind manifest.Kind) ([]manifest.Record, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var found []manifest.Record
	for _, rec := range w.records {
		if rec.Kind == kind {
			found = append(found, rec)
		}
	}
	return found, nil
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

func TestAWatchShowsEachChangeAndSurvivesTheGatewaysRestart(t *testing.T) {
	w := newWorld(t)
	w.put("db", manifest.PhaseProvisioning)
	w.put("old", manifest.PhaseRunning)
	w.start()
	ctx, cancel := context.WithCancel(t.Context())
	var out, errOut screenText
	code := make(chan int, 1)
	go func() { code <- w.burrow(ctx, nil, &out, &errOut, "get", "-w", "servers") }()
	out.eventually(t, "PHASE")
	w.put("db", manifest.PhaseRunning)
	out.eventually(t, "db   Running")
	w.put("web", manifest.PhaseProvisioning)
	out.eventually(t, "web   Provisioning")
	w.remove("web", true)
	out.eventually(t, "server/web is gone")

	w.stop()
	errOut.eventually(t, "waiting for it to come back")
	w.remove("old", false)
	w.mu.Lock()
	w.events = nil
	w.mu.Unlock()
	w.put("db", manifest.PhaseStopped)
	w.start()
	out.eventually(t, "server/old is gone")
	out.eventually(t, "db   Stopped")
	cancel()
	require.Equal(t, ExitStopped, <-code)
	require.Equal(t, 1, strings.Count(out.String(), "db   Running"), "what did not change is not printed again:\n%s", out.String())
}

func TestAWatchAsJSONIsOneDocumentALine(t *testing.T) {
	w := newWorld(t)
	w.put("db", manifest.PhaseRunning)
	w.start()
	ctx, cancel := context.WithCancel(t.Context())
	var out screenText
	code := make(chan int, 1)
	go func() { code <- w.burrow(ctx, nil, &out, io.Discard, "get", "server", "db", "-w", "-o", "json") }()
	out.eventually(t, "\n")
	w.remove("db", true)
	out.eventually(t, `{"deleted":true`)
	cancel()
	require.Equal(t, ExitStopped, <-code)
	var first struct{ Record manifest.Record }
	require.NoError(t, json.Unmarshal([]byte(strings.Split(out.String(), "\n")[0]), &first))
	require.Equal(t, "db", first.Record.Metadata.Name)
}

// endless is input that never comes to an end, as an idle terminal is.
func endless(t *testing.T, keys string) io.Reader {
	r, pw := io.Pipe()
	go func() { _, _ = io.WriteString(pw, keys) }()
	t.Cleanup(func() { _ = pw.Close() })
	return r
}

// serialConsole gives one end of a pipe as the console of every server.
type serialConsole struct{ far net.Conn }

func (s serialConsole) Console(context.Context, string) (io.ReadWriteCloser, error) {
	return s.far, nil
}

func TestTheConsoleIsLeftByItsKey(t *testing.T) {
	w := newWorld(t)
	w.put("db", manifest.PhaseRunning)
	near, far := net.Pipe()
	w.deps.Consoles = serialConsole{far}
	w.start()
	typed := make(chan string, 1)
	go func() {
		_, _ = io.WriteString(near, "login: ")
		got, _ := io.ReadAll(near)
		typed <- string(got)
	}()
	var out screenText
	code := w.burrow(t.Context(), endless(t, "root\r\x1dnot sent"), &out, io.Discard, "console", "db")
	require.Equal(t, ExitOK, code)
	require.Equal(t, "root\r", <-typed)
}

func TestTheConsoleEndsWithTheGuest(t *testing.T) {
	w := newWorld(t)
	w.put("db", manifest.PhaseRunning)
	near, far := net.Pipe()
	w.deps.Consoles = serialConsole{far}
	w.start()
	go func() {
		_, _ = io.WriteString(near, "power down")
		_ = near.Close()
	}()
	var out screenText
	require.Equal(t, ExitOK, w.burrow(t.Context(), endless(t, ""), &out, io.Discard, "console", "server/db"))
	require.Equal(t, "power down", out.String())
}

func TestDialBySocketNamesTheServerAndPipes(t *testing.T) {
	dir, err := os.MkdirTemp("", "cli")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := filepath.Join(dir, "s")
	l, err := net.Listen("unix", socket)
	require.NoError(t, err)
	got := make(chan string, 1)
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		all, _ := io.ReadAll(conn) // until dial has passed the end of its input on
		_, _ = fmt.Fprint(conn, "SSH-2.0-x\r\n")
		_ = conn.Close()
		got <- string(all)
	}()
	t.Cleanup(func() { _ = l.Close() })
	var out screenText
	code := run(t.Context(), []string{"burrow", "dial", "--socket", socket, "db"}, strings.NewReader("hello"), &out, io.Discard)
	require.Equal(t, ExitOK, code)
	require.Equal(t, "db\nhello", <-got)
	require.Equal(t, "SSH-2.0-x\r\n", out.String())
}

func TestTheDoctorNamesWhatFailsAndItsMend(t *testing.T) {
	w := newWorld(t)
	var out, errOut bytes.Buffer
	require.Equal(t, ExitOther, w.burrow(t.Context(), nil, &out, &errOut, "doctor"))
	require.Regexp(t, `(?m)^ok +client configuration`, out.String())
	require.Regexp(t, `(?m)^fail +gateway .*nobody listens there\n +→ is burrow up\? burrow status$`, out.String())
	require.Empty(t, errOut.String())

	out.Reset()
	w.start()
	w.burrow(t.Context(), nil, &out, &errOut, "doctor", "-o", "json")
	var checks []check
	require.NoError(t, json.Unmarshal(out.Bytes(), &checks))
	require.Contains(t, checks, check{Name: "gateway", Level: checkOK, Detail: "host kvm1, version " + version()})
	for _, k := range checks {
		require.True(t, k.Level == checkOK || k.Next != "" || k.Detail != "", "%s says nothing", k.Name)
	}
}

func TestTheDoctorJudgesSpace(t *testing.T) {
	require.Equal(t, checkOK, spaceVerdict("x", 100<<30).Level)
	require.Equal(t, checkWarn, spaceVerdict("x", 4<<30).Level)
	require.Equal(t, checkFail, spaceVerdict("x", 1<<20).Level)
	require.NotEqual(t, "", checkSpace("/nonexistent/deep/folder").Detail, "the file system it would be on")
}

func TestTheDoctorLooksWhetherSomebodyListens(t *testing.T) {
	dir, err := os.MkdirTemp("", "cli")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	l, err := net.Listen("unix", filepath.Join(dir, "s"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	require.Equal(t, checkOK, checkSocket(t.Context(), "x", "start it", filepath.Join(dir, "none"), filepath.Join(dir, "s")).Level)
	k := checkSocket(t.Context(), "x", "start it", filepath.Join(dir, "none"))
	require.Equal(t, checkFail, k.Level)
	require.Equal(t, "start it", k.Next)
}

func TestWhoLogsInIsReadFromSSHsOwnArguments(t *testing.T) {
	for args, want := range map[string]bool{
		"": false, "uptime": false, "-l root": true, "-lroot uptime": true, "-o User=x": true, "-oUser=x": true, "-o user=x": true,
		"-p 2222 -l root": true, "-v ls -l": false, "ls -l": false, "-L 1:h:2 ls -lo": false,
	} {
		require.Equal(t, want, namesUser(strings.Fields(args)), args)
	}
}

func TestASelectorIsReadStrictly(t *testing.T) {
	sel, err := parseSelector("a=1,b")
	require.NoError(t, err)
	require.True(t, sel.matches(map[string]string{"a": "1", "b": "any", "c": ""}))
	require.False(t, sel.matches(map[string]string{"a": "2", "b": "any"}))
	require.False(t, sel.matches(map[string]string{"a": "1"}))
	for _, bad := range []string{"=x", "a=", "a!=b", "a in (b)"} {
		_, err := parseSelector(bad)
		require.Error(t, err, bad)
	}
}
