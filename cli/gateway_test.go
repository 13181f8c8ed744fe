package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
)

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

func TestTheDoctorJudgesForwarding(t *testing.T) {
	require.Equal(t, check{Name: "ip_forward", Level: checkOK, Detail: "on"}, forwardingVerdict(true, true))
	before := forwardingVerdict(false, false)
	require.Equal(t, checkOK, before.Level, "the worker does it")
	require.Contains(t, before.Detail, "burrow switches it on")
	after := forwardingVerdict(false, true)
	require.Equal(t, checkWarn, after.Level)
	require.Contains(t, after.Next, "net.ipv4.ip_forward=1")
}

func TestTheDoctorWarnsOfFirewallsThatDropForwardedTraffic(t *testing.T) {
	require.Equal(t, checkOK, firewallsVerdict(nil, nil).Level)
	docker := firewallsVerdict([]string{"ip filter FORWARD"}, nil)
	require.Equal(t, checkWarn, docker.Level)
	require.Contains(t, docker.Detail, "ip filter FORWARD")
	require.Contains(t, docker.Next, "-i 'bwu+' -j ACCEPT")
	require.NotContains(t, firewallsVerdict([]string{"inet firewalld filter_FORWARD"}, nil).Next, "iptables")
	unread := firewallsVerdict(nil, errs.NewOperator("firewall of this host", "list its rules", errs.ErrNotFound, "install nftables"))
	require.Equal(t, checkWarn, unread.Level)
	require.Equal(t, "install nftables", unread.Next)
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
