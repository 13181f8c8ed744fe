package lab_test

import (
	"bytes"
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"burrow.dev/burrow/test/lab"
)

func TestMain(m *testing.M) { lab.Main(m, lab.Internet, lab.OVS, lab.Libvirt) }

func TestTheHostHasItsOwnNetworkProcessesAndState(t *testing.T) {
	name, err := os.Hostname()
	require.NoError(t, err)
	require.Equal(t, "lab", name)
	require.Equal(t, "lab", os.Getenv(lab.Inside))

	devices, err := net.Interfaces()
	require.NoError(t, err)
	var names []string
	for _, d := range devices {
		names = append(names, d.Name)
	}
	require.Subset(t, names, []string{"lo", "internet"})
	require.NotContains(t, names, "eth0")

	shown, err := os.ReadDir("/sys/class/net")
	require.NoError(t, err)
	require.Len(t, shown, len(devices), "/sys shows the devices of the host, not the machine's")

	left, err := os.ReadDir("/var/lib/burrow")
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestOpenVSwitchAndLibvirtAnswer(t *testing.T) {
	out := run(t, "ovs-vsctl", "--timeout=5", "list-br")
	require.Empty(t, out, "a fresh database has no bridges")
	require.Contains(t, run(t, "virsh", "-c", "qemu:///system", "version"), "QEMU")
	require.Equal(t, "0\n", run(t, "sh", "-c", "virsh net-list --all --name | grep -c . || true"))
}

func TestNamedNetworkNamespacesAreTheHostsOwn(t *testing.T) {
	run(t, "ip", "netns", "add", "n")
	require.FileExists(t, "/run/netns/n")
	run(t, "ip", "netns", "del", "n")
}

func TestTheHostHasARouteAndAResolver(t *testing.T) {
	require.Contains(t, run(t, "ip", "route", "show", "default"), "dev internet")
	text, err := os.ReadFile("/etc/resolv.conf")
	require.NoError(t, err)
	require.Equal(t, "nameserver 10.0.2.3\n", string(text))
}

func TestExitCodesComeThrough(t *testing.T) {
	command := build(t)
	for code, script := range map[int]string{0: "true", 7: "exit 7", 137: "kill -9 $$"} {
		err := exec.CommandContext(t.Context(), command, "--bare", "sh", "-c", script).Run()
		if code == 0 {
			require.NoError(t, err)
			continue
		}
		var exit *exec.ExitError
		require.ErrorAs(t, err, &exit)
		require.Equal(t, code, exit.ExitCode(), script)
	}
}

func TestOrphansAreReaped(t *testing.T) {
	// The inner sh leaves a child behind, which init adopts; reaped, its pid is free.
	script := `sh -c 'true & echo $! >/run/orphan'; p=$(cat /run/orphan); while [ -e /proc/$p ]; do :; done`
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	require.NoError(t, exec.CommandContext(ctx, build(t), "--bare", "sh", "-c", script).Run())
}

func TestNothingOutlivesAKilledSupervisor(t *testing.T) {
	marker := filepath.Join(t.TempDir(), "inner")
	cmd := exec.Command(build(t), "--bare", "sh", "-c", "sleep 1000 & echo ready >"+marker+"; wait")
	require.NoError(t, cmd.Start())
	await(t, func() bool { return fileHas(marker, "ready") })
	inner := descendants(t, cmd.Process.Pid)
	require.GreaterOrEqual(t, len(inner), 3, "init, sh, sleep")

	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()

	for _, pid := range inner {
		await(t, func() bool { return gone(pid) })
	}
}

func TestHostsDoNotSeeEachOther(t *testing.T) {
	out := run(t, build(t), "--ovs", "--name", "other", "sh", "-c", "hostname; ovs-vsctl --timeout=5 add-br only-there")
	require.Equal(t, "other\n", out)
	require.NotContains(t, run(t, "ovs-vsctl", "--timeout=5", "list-br"), "only-there")
}

func TestAccountsMadeInAHostAreItsOwn(t *testing.T) {
	run(t, build(t), "--bare", "sh", "-c", "groupadd --system only-there && getent group only-there")
	require.Error(t, exec.CommandContext(t.Context(), "getent", "group", "only-there").Run())
}

func build(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "lab")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", path, "burrow.dev/burrow/test/lab/cmd/lab").CombinedOutput()
	require.NoError(t, err, string(out))
	return path
}

func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, "%s %v: %s", name, args, stderr.String())
	return string(out)
}

func await(t *testing.T, condition func() bool) {
	t.Helper()
	require.Eventually(t, condition, 20*time.Second, 10*time.Millisecond)
}

func fileHas(path, text string) bool {
	b, err := os.ReadFile(path)
	return err == nil && strings.Contains(string(b), text)
}

// descendants lists the processes below pid.
func descendants(t *testing.T, pid int) []int {
	t.Helper()
	var found []int
	for _, field := range strings.Fields(children(pid)) {
		child, err := strconv.Atoi(field)
		require.NoError(t, err)
		found = append(append(found, child), descendants(t, child)...)
	}
	return found
}

// children reads all threads: a child belongs to the thread that forked it.
func children(pid int) string {
	paths, _ := filepath.Glob(filepath.Join("/proc", strconv.Itoa(pid), "task", "*", "children"))
	var all strings.Builder
	for _, path := range paths {
		b, _ := os.ReadFile(path)
		all.Write(b)
		all.WriteByte(' ')
	}
	return all.String()
}

func gone(pid int) bool {
	_, err := os.Stat(filepath.Join("/proc", strconv.Itoa(pid)))
	return os.IsNotExist(err)
}
