package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"burrow.dev/burrow/internal/config"
	"burrow.dev/burrow/internal/temporalclient"
	"burrow.dev/burrow/manifest"
)

// patience bounds every wait for a condition: a guest under emulation beside a busy
// compiler needs minutes.
const patience = 15 * time.Minute

// stack is one burrow installation in this test's hypervisor.
type stack struct {
	t      *testing.T
	burrow string // the built program
	data   string // data directory
	temp   string // TMPDIR of all its processes
	up     []string
}

// newStack brings burrow up in a data directory of its own, and down again at the end.
func newStack(t *testing.T, upFlags ...string) *stack {
	t.Helper()
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	temp, err := os.MkdirTemp("", "e2e-") // sockets are made in it, and t.TempDir's name may be too long for one
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(temp)) })
	s := &stack{t: t, burrow: filepath.Join(root, "bin", "burrow"), data: "/var/lib/burrow", temp: temp, up: upFlags}
	require.NoError(t, os.Chmod(s.temp, 0o1777))
	require.FileExists(t, s.burrow, "run `make build` first")
	s.start()
	t.Cleanup(func() {
		if t.Failed() {
			s.showLogs()
		}
		out, err := s.try(context.Background(), "down", "--data-dir", s.data)
		if err != nil {
			t.Errorf("burrow down: %v\n%s", err, out)
		}
		// The next test starts from nothing; the folder itself is the lab's.
		entries, err := os.ReadDir(s.data)
		require.NoError(t, err)
		for _, e := range entries {
			require.NoError(t, os.RemoveAll(filepath.Join(s.data, e.Name())))
		}
	})
	return s
}

func (s *stack) start() {
	s.t.Helper()
	args := append([]string{"up", "--detach", "--data-dir", s.data}, s.up...)
	out, err := s.try(s.t.Context(), args...)
	require.NoError(s.t, err, "burrow up: %s", out)
}

// image makes an image available under a name, built from the distribution's packages
// (and found in the cache from the second time on).
func (s *stack) image(name string) {
	s.t.Helper()
	s.run("image", "build", "debian12", "--name", name)
}

// command is the program with the installation's configuration.
func (s *stack) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, s.burrow, args...)
	cmd.Env = append(os.Environ(), "BURROW_CONFIG="+filepath.Join(s.data, config.ClientFile), "NO_COLOR=1", "TMPDIR="+s.temp)
	return cmd
}

// try runs the program and gives everything it printed.
func (s *stack) try(ctx context.Context, args ...string) (string, error) {
	cmd := s.command(ctx, args...)
	out, err := cmd.CombinedOutput()
	s.t.Logf("$ burrow %s\n%s", strings.Join(args, " "), out)
	return string(out), err
}

// run runs the program, which must succeed.
func (s *stack) run(args ...string) string {
	s.t.Helper()
	out, err := s.try(s.t.Context(), args...)
	require.NoError(s.t, err)
	return out
}

// code runs the program and gives its exit code and output.
func (s *stack) code(args ...string) (int, string) {
	s.t.Helper()
	out, err := s.try(s.t.Context(), args...)
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode(), out
	}
	require.NoError(s.t, err)
	return 0, out
}

// record reads a resource as JSON; ok false when it is not there.
func (s *stack) record(kind, name string) (rec manifest.Record, ok bool) {
	s.t.Helper()
	cmd := s.command(s.t.Context(), "get", kind, name, "-o", "json")
	var errOut bytes.Buffer
	cmd.Stderr = &errOut
	out, err := cmd.Output()
	if err != nil {
		return rec, false
	}
	require.NoError(s.t, json.Unmarshal(out, &rec), "%s", out)
	return rec, rec.Metadata.Name != ""
}

// eventually waits for a condition, which says what it still misses.
func (s *stack) eventually(what string, condition func() error) {
	s.t.Helper()
	deadline, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		err := condition()
		if err == nil {
			return
		}
		select {
		case <-deadline.Done():
			require.NoError(s.t, err, "waited for: %s", what)
		case <-tick.C:
		}
	}
}

// running waits until a server is Running.
func (s *stack) running(name string) manifest.Record {
	s.t.Helper()
	var rec manifest.Record
	s.eventually("server/"+name+" Running", func() error {
		var ok bool
		if rec, ok = s.record("server", name); !ok || rec.Status.Phase != manifest.PhaseRunning {
			return fmt.Errorf("it is %q: %s", rec.Status.Phase, rec.Status.Message)
		}
		return nil
	})
	return rec
}

// temporal connects as the CLI does.
func (s *stack) temporal() client.Client {
	s.t.Helper()
	var cfg config.Client
	b, err := os.ReadFile(filepath.Join(s.data, config.ClientFile))
	require.NoError(s.t, err)
	require.NoError(s.t, json.Unmarshal(b, &cfg))
	c, err := temporalclient.Dial(s.t.Context(), cfg.Temporal, slog.New(slog.NewTextHandler(io.Discard, nil)))
	require.NoError(s.t, err)
	s.t.Cleanup(c.Close)
	return c
}

// ours are the processes of this installation: the programs that `burrow up` runs, and
// what runs under the playbooks' user.
func (s *stack) ours(match func(cmdline string) bool) []int {
	s.t.Helper()
	entries, err := os.ReadDir("/proc")
	require.NoError(s.t, err)
	var pids []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err != nil {
			continue // ended meanwhile
		}
		if match(strings.ReplaceAll(string(raw), "\x00", " ")) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// kill9 kills every burrow process at once, as a crash of all of them would.
func (s *stack) kill9() {
	s.t.Helper()
	isBurrow := func(cmdline string) bool {
		return strings.Contains(cmdline, filepath.Dir(s.burrow)+"/burrow") &&
			(strings.Contains(cmdline, " up ") || strings.Contains(cmdline, " worker ") || strings.Contains(cmdline, "burrow-devstack "))
	}
	pids := s.ours(isBurrow)
	require.NotEmpty(s.t, pids)
	for _, pid := range pids {
		_ = syscall.Kill(pid, syscall.SIGKILL) // one that has just ended is as good
	}
	s.eventually("burrow's processes gone", func() error {
		if left := s.ours(isBurrow); len(left) > 0 {
			return fmt.Errorf("still there: %v", left)
		}
		return nil
	})
	s.t.Logf("killed -9: %v", pids)
}

func (s *stack) showLogs() {
	logs, _ := filepath.Glob(filepath.Join(s.data, "log", "*.log"))
	for _, path := range logs {
		b, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		const most = 12000
		if len(b) > most {
			b = b[len(b)-most:]
		}
		s.t.Logf("== %s\n%s", path, b)
	}
}
