package supervise_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"burrow.dev/burrow/internal/supervise"
)

const patience = 20 * time.Second

// up is a supervisor in a process of its own.
type up struct {
	t       *testing.T
	command *exec.Cmd
	lines   chan string
	dir     string
}

func startUp(t *testing.T, dir string, env []string, parts ...string) *up {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	u := &up{t: t, dir: dir, lines: make(chan string, 100)}
	u.command = exec.Command(self, append([]string{dir}, parts...)...)
	u.command.Env = append(append(os.Environ(), childEnv+"=supervisor"), env...)
	u.command.Stderr = os.Stderr
	output, err := u.command.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, u.command.Start())
	go func() {
		defer close(u.lines)
		for scanner := bufio.NewScanner(output); scanner.Scan(); {
			u.lines <- scanner.Text()
		}
	}()
	t.Cleanup(func() {
		_ = u.command.Process.Kill()
		_ = u.command.Wait()
		_, err := supervise.Down(context.Background(), dir, func(string) time.Duration { return patience })
		require.NoError(t, err)
	})
	return u
}

// line waits for the next line that the supervisor prints.
func (u *up) line() string {
	u.t.Helper()
	select {
	case line := <-u.lines:
		return line
	case <-time.After(patience):
		u.t.Fatal("the supervisor says nothing")
		return ""
	}
}

func (u *up) ready() *up {
	u.t.Helper()
	require.Equal(u.t, "READY", u.line())
	return u
}

// states reads the records.
func (u *up) states() map[string]supervise.State {
	u.t.Helper()
	list, err := supervise.States(u.dir)
	require.NoError(u.t, err)
	states := map[string]supervise.State{}
	for _, state := range list {
		states[state.Name] = state
	}
	return states
}

func gone(t *testing.T, ids ...supervise.Identity) {
	t.Helper()
	for _, id := range ids {
		require.Eventually(t, func() bool { return !id.Alive() }, patience, 5*time.Millisecond, "pid %d", id.PID)
	}
}

func TestADeadPartIsStartedAgainAndTheOthersAreLeftAlone(t *testing.T) {
	u := startUp(t, t.TempDir(), nil, "store=serve", "worker=serve").ready()
	before := u.states()
	require.NoError(t, syscall.Kill(before["worker"].PID, syscall.SIGKILL))

	require.Eventually(t, func() bool {
		now := u.states()["worker"]
		return now.PID != before["worker"].PID && now.Ready
	}, patience, 10*time.Millisecond)
	after := u.states()
	require.Equal(t, before["store"].Identity, after["store"].Identity)
	require.Equal(t, 1, after["worker"].Restarts)
	require.Contains(t, after["worker"].LastExit, "killed")
}

func TestPartsStopInReverseOrderAndLeaveNothing(t *testing.T) {
	u := startUp(t, t.TempDir(), nil, "store=serve", "worker=serve").ready()
	states := u.states()
	require.NoError(t, u.command.Process.Signal(syscall.SIGTERM))
	require.NoError(t, u.command.Wait())
	require.False(t, states["store"].Alive())
	require.False(t, states["worker"].Alive())
	_, err := os.Stat(filepath.Join(u.dir, "run", "parts.json"))
	require.ErrorIs(t, err, os.ErrNotExist)
	text, err := os.ReadFile(filepath.Join(u.dir, "log", "worker.log"))
	require.NoError(t, err)
	require.Contains(t, string(text), "worker.pid stopped in order")
}

func TestAPartThatIgnoresTheStopIsKilled(t *testing.T) {
	u := startUp(t, t.TempDir(), nil, "worker=stubborn").ready()
	state := u.states()["worker"]
	require.NoError(t, u.command.Process.Signal(syscall.SIGTERM))
	require.Contains(t, u.line(), "worker: did not end within 500ms of SIGTERM and was killed")
	gone(t, state.Identity)
}

func TestASecondInstanceOnTheSameDataDirectoryIsRefused(t *testing.T) {
	dir := t.TempDir()
	first := startUp(t, dir, nil, "store=serve").ready()
	second := startUp(t, dir, nil, "store=serve")
	refusal := second.line()
	require.Contains(t, refusal, fmt.Sprintf("burrow up runs as pid %d since", first.command.Process.Pid))
	require.Contains(t, refusal, "burrow down")
	require.True(t, first.states()["store"].Alive())

	holder, held, err := supervise.HolderOf(dir)
	require.NoError(t, err)
	require.True(t, held)
	require.Equal(t, first.command.Process.Pid, holder.PID)
	require.True(t, holder.Alive())
}

func TestPartsOfAKilledSupervisorAreAdopted(t *testing.T) {
	dir := t.TempDir()
	first := startUp(t, dir, nil, "store=serve", "worker=serve").ready()
	before := first.states()
	require.NoError(t, first.command.Process.Kill())
	_ = first.command.Wait()
	require.True(t, before["worker"].Alive(), "a part outlives its supervisor")

	second := startUp(t, dir, nil, "store=serve", "worker=serve").ready()
	after := second.states()
	require.Equal(t, before["store"].Identity, after["store"].Identity)
	require.Equal(t, before["worker"].Identity, after["worker"].Identity)

	require.NoError(t, syscall.Kill(after["worker"].PID, syscall.SIGKILL))
	require.Eventually(t, func() bool {
		return second.states()["worker"].PID != after["worker"].PID && second.states()["worker"].Ready
	},
		patience, 10*time.Millisecond, "an adopted part is started again as well")
	require.NoError(t, second.command.Process.Signal(syscall.SIGTERM))
	require.NoError(t, second.command.Wait())
	gone(t, before["store"].Identity)
}

func TestEverythingKilledAtOnceComesBackWithNewProcesses(t *testing.T) {
	dir := t.TempDir()
	first := startUp(t, dir, nil, "store=serve", "worker=serve").ready()
	before := first.states()
	require.NoError(t, first.command.Process.Kill())
	for _, state := range before {
		require.NoError(t, syscall.Kill(state.PID, syscall.SIGKILL))
	}
	_ = first.command.Wait()
	second := startUp(t, dir, nil, "store=serve", "worker=serve").ready()
	for name, state := range second.states() {
		require.NotEqual(t, before[name].Identity, state.Identity)
		require.True(t, state.Alive())
	}
}

func TestASurvivorOfAnotherVersionIsReplaced(t *testing.T) {
	dir := t.TempDir()
	first := startUp(t, dir, []string{"PART_VERSION=1"}, "store=serve").ready()
	before := first.states()["store"]
	require.NoError(t, first.command.Process.Kill())
	_ = first.command.Wait()
	second := startUp(t, dir, []string{"PART_VERSION=2"}, "store=serve").ready()
	require.False(t, before.Alive())
	require.NotEqual(t, before.Identity, second.states()["store"].Identity)
}

func TestASurvivorThatIsNotWantedAnyMoreIsEnded(t *testing.T) {
	dir := t.TempDir()
	first := startUp(t, dir, nil, "store=serve", "extra=serve").ready()
	before := first.states()
	require.NoError(t, first.command.Process.Kill())
	_ = first.command.Wait()
	second := startUp(t, dir, nil, "store=serve").ready()
	require.False(t, before["extra"].Alive())
	require.NotContains(t, second.states(), "extra")
}

func TestAReusedPidIsNeverTakenForAPart(t *testing.T) {
	dir := t.TempDir()
	stranger := exec.Command("/bin/sh", "-c", "read -r line")
	stdin, err := stranger.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, stranger.Start())
	t.Cleanup(func() { stdin.Close(); _ = stranger.Wait() })
	id, err := supervise.IdentityOf(stranger.Process.Pid)
	require.NoError(t, err)
	id.StartTicks--

	require.NoError(t, os.MkdirAll(filepath.Join(dir, "run"), 0o755))
	record := fmt.Sprintf(`[{"name":"store","pid":%d,"startTicks":%d,"boot":%q,"version":""}]`, id.PID, id.StartTicks, id.Boot)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "run", "parts.json"), []byte(record), 0o644))

	ended, err := supervise.Down(t.Context(), dir, func(string) time.Duration { return patience })
	require.NoError(t, err)
	require.Empty(t, ended)
	id.StartTicks++
	require.True(t, id.Alive(), "the stranger was not touched")
}

func TestAPartThatFailsAtFirstShowsWhyAndTheRestIsStopped(t *testing.T) {
	dir := t.TempDir()
	u := startUp(t, dir, nil, "store=serve", "worker=fail")
	require.Contains(t, u.line(), "worker: start")
	var rest strings.Builder
	for line := range u.lines {
		rest.WriteString(line + "\n")
	}
	require.Contains(t, rest.String(), "the port is held by mysqld (pid 812)")
	require.Contains(t, rest.String(), filepath.Join(dir, "log", "worker.log"))
	states, err := supervise.States(dir)
	require.NoError(t, err)
	require.Empty(t, states)
}

func TestDownEndsASupervisorAndItsParts(t *testing.T) {
	u := startUp(t, t.TempDir(), nil, "store=serve", "worker=serve").ready()
	states := u.states()
	waited := make(chan error, 1)
	go func() { waited <- u.command.Wait() }()
	ended, err := supervise.Down(t.Context(), u.dir, func(string) time.Duration { return patience })
	require.NoError(t, err)
	require.Len(t, ended, 1)
	require.NoError(t, <-waited)
	require.False(t, states["store"].Alive())
	require.False(t, states["worker"].Alive())
}

func TestDownEndsWhatAKilledSupervisorLeft(t *testing.T) {
	u := startUp(t, t.TempDir(), nil, "store=serve", "worker=serve").ready()
	states := u.states()
	require.NoError(t, u.command.Process.Kill())
	_ = u.command.Wait()
	ended, err := supervise.Down(t.Context(), u.dir, func(string) time.Duration { return patience })
	require.NoError(t, err)
	require.Equal(t, []string{
		fmt.Sprintf("worker (pid %d)", states["worker"].PID),
		fmt.Sprintf("store (pid %d)", states["store"].PID),
	}, ended)
	gone(t, states["store"].Identity, states["worker"].Identity)
	ended, err = supervise.Down(t.Context(), u.dir, func(string) time.Duration { return patience })
	require.NoError(t, err)
	require.Empty(t, ended, "down again is success")
}
