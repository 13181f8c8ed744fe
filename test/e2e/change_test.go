package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"

	"burrow.dev/burrow/manifest"
	"burrow.dev/burrow/workflows"
)

// changeManifest is a server of an empty disk, with what the test changes.
const changeManifest = `apiVersion: v1
kind: Server
metadata: {name: web, labels: {role: "%s"}}
spec:
  cpu: %d
  memory: 128
  mmImage: %s
  readiness: %s
  bootVolume: {spec: {size: %d}}
  storage: [%s]
  networkInterface: [{networkname: sweep-net}%s]
`

// web is the server as it is declared.
type web struct {
	role      string
	cpu       int
	image     string
	readiness string
	boot      int
	storage   string
	nics      string // beside the first
}

func (w web) text() string {
	return fmt.Sprintf(changeManifest, w.role, w.cpu, w.image, w.readiness, w.boot, w.storage, w.nics)
}

func (w web) file(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "web.yaml")
	require.NoError(t, os.WriteFile(file, []byte(w.text()), 0o600))
	return file
}

func (s *stack) virsh(args ...string) string {
	s.t.Helper()
	return s.output("virsh", append([]string{"-c", "qemu:///system"}, args...)...)
}

// TestAServerChangesIsRebuiltAndTakesItsTurnOnRealParts takes one server through update,
// rebuild and queue on the real stack, with a guest that is an empty disk.
func TestAServerChangesIsRebuiltAndTakesItsTurnOnRealParts(t *testing.T) {
	s := newStack(t)
	s.emptyImage("empty")
	s.applyText(sweepNetwork)
	s.pauseSchedules()
	before := s.census()
	w := web{role: "a", cpu: 1, image: "empty", readiness: "running", boot: 1}
	s.applyText(w.text())
	first := s.running("web")
	pid := s.guestPID("web")

	t.Run("update", func(t *testing.T) {
		w.role, w.cpu, w.boot, w.storage = "b", 2, 2, "{metadata: {name: scratch}, spec: {size: 1}}"
		out := s.run("apply", "-f", w.file(t), "--dry-run")
		for _, line := range []string{"metadata.labels: ", "spec.cpu: 1 → 2", "boot grows from 1 to 2 GiB", "a new disk of 1 GiB"} {
			require.Contains(t, out, line)
		}
		rec, _ := s.record("server", "web")
		require.Equal(t, first, rec, "a dry run touches nothing")

		s.run("apply", "-f", w.file(t))
		require.Equal(t, pid, s.guestPID("web"), "the guest ran on")
		require.Contains(t, s.virsh("domblkinfo", "web", "vda"), fmt.Sprint(2<<30))
		require.Contains(t, s.virsh("domblklist", "web"), "vdb")
		require.Contains(t, s.virsh("dominfo", "web"), "CPU(s):         2", "plugged in")
		rec, _ = s.record("server", "web")
		require.Equal(t, "b", rec.Metadata.Labels["role"])
		require.Empty(t, rec.Status.Conditions)
		require.Equal(t, first.Status.Addresses, rec.Status.Addresses)

		s.run("restart", "web", "--grace", "0")
		require.NotEqual(t, pid, s.guestPID("web"))
		require.Contains(t, s.virsh("dominfo", "web"), "CPU(s):         2")
		require.Contains(t, s.virsh("domblklist", "web"), "vdb")
		rec, _ = s.record("server", "web")
		require.Empty(t, rec.Status.Conditions)
		require.Contains(t, s.run("apply", "-f", w.file(t)), "server/web is as declared")
	})

	t.Run("memory", func(t *testing.T) {
		file := w.file(t)
		s.run("apply", "-f", file, "--set", "spec.memory=192")
		rec, _ := s.record("server", "web")
		require.Equal(t, manifest.ConditionRestart, rec.Status.Conditions[0].Type)
		s.run("apply", "-f", file)
		rec, _ = s.record("server", "web")
		require.Empty(t, rec.Status.Conditions, "what is declared runs")
		pid := s.guestPID("web")
		s.run("apply", "-f", file, "--set", "spec.memory=192", "--restart")
		require.NotEqual(t, pid, s.guestPID("web"))
		require.Contains(t, s.virsh("dominfo", "web"), "Max memory:     196608 KiB")
		s.run("apply", "-f", file, "--restart")
	})

	t.Run("NICs", func(t *testing.T) {
		there, was, pid := s.census(), s.running("web"), s.guestPID("web")
		w.nics = ", {networkname: sweep-net, name: more, rateMbps: 50}"
		s.run("apply", "-f", w.file(t))
		require.Equal(t, pid, s.guestPID("web"), "the guest ran on")
		rec := s.running("web")
		require.Len(t, rec.Status.Ports, 2)
		require.Equal(t, was.Status.Ports[0], rec.Status.Ports[0])
		more := rec.Status.Ports[1]
		require.Contains(t, s.virsh("domiflist", "web"), more.MAC)
		require.Contains(t, s.virsh("domiflist", "web", "--inactive"), more.MAC)
		require.Contains(t, s.virsh("domblklist", "web"), rec.Status.Seed)
		require.NoFileExists(t, was.Status.Seed)
		require.Contains(t, s.run("network", "ips", "sweep-net"), strings.Split(more.Addresses[0], "/")[0])

		w.nics = ""
		s.run("apply", "-f", w.file(t)) // an empty disk gives nothing back
		require.Equal(t, pid, s.guestPID("web"))
		rec = s.running("web")
		require.Equal(t, was.Status.Ports, rec.Status.Ports)
		require.Equal(t, was.Status.Seed, rec.Status.Seed, "its content says its name")
		require.Equal(t, manifest.ConditionRestart, rec.Status.Conditions[0].Type)
		require.NotContains(t, s.virsh("domiflist", "web", "--inactive"), more.MAC)
		s.run("restart", "web", "--grace", "0")
		require.NotContains(t, s.virsh("domiflist", "web"), more.MAC)
		require.Empty(t, s.running("web").Status.Conditions)
		require.Empty(t, difference(there, s.census()))
		require.Empty(t, difference(s.census(), there))
	})

	t.Run("refused", func(t *testing.T) {
		there := s.census()
		other := w
		other.image, other.cpu, other.boot = "debian12", 4, 1
		code, out := s.code("apply", "-f", other.file(t))
		require.Equal(t, 2, code, out)
		require.Contains(t, out, "burrow rebuild server web --image debian12")
		require.Contains(t, out, "spec.bootVolume asks for 1 GiB, and the disk has 2")
		require.Equal(t, there, s.census())
	})

	t.Run("rebuild", func(t *testing.T) {
		there, was := s.census(), s.running("web")
		s.run("rebuild", "web", "-y")
		rec := s.running("web")
		require.Equal(t, was.Metadata.UID, rec.Metadata.UID)
		require.Equal(t, was.Status.Ports, rec.Status.Ports)
		require.Equal(t, was.Status.HostKeys, rec.Status.HostKeys)
		require.Equal(t, was.Status.Disks[1:], rec.Status.Disks[1:])
		require.NotEqual(t, was.Status.Disks[0].Path, rec.Status.Disks[0].Path)
		require.NoFileExists(t, was.Status.Disks[0].Path)
		require.NoFileExists(t, was.Status.Seed)
		require.Len(t, s.census(), len(there), "one disk and one seed in the place of others")
	})

	t.Run("rebuild that never gets ready", func(t *testing.T) {
		w.readiness = "ssh" // nobody will ever answer
		s.run("apply", "-f", w.file(t))
		there, was := s.census(), s.running("web")
		s.run("rebuild", "web", "-y", "--detach")
		s.eventually("the new guest runs", func() error { return s.atStep("web", "wait until ready") })
		require.FileExists(t, was.Status.Disks[0].Path, "the old disk is kept")
		s.kill9()
		s.start()
		s.eventually("it goes on", func() error { return s.atStep("web", "wait until ready") })
		s.run("cancel", "server/web")
		rec := s.running("web")
		require.Equal(t, was.Status.Disks, rec.Status.Disks)
		require.Contains(t, s.virsh("domblklist", "web"), was.Status.Disks[0].Path)
		require.Empty(t, difference(s.census(), there))
		require.Empty(t, difference(there, s.census()))
	})

	t.Run("queue", func(t *testing.T) {
		pid := s.guestPID("web")
		s.run("stop", "web", "--grace", "3600", "--detach") // an empty disk obeys no power button
		s.eventually("it is asked to power off", func() error { return s.atStep("web", "shut down") })
		code, out := s.code("restart", "web")
		require.Equal(t, 4, code, out)
		require.Regexp(t, `server/web is busy: PowerServer, step "shut down", started \S+ ago. Follow: burrow watch server/web. Queue after it: --queue. Cancel it: burrow cancel server/web`, out)

		asks := s.command(t.Context(), "restart", "web", "--grace", "0", "--queue")
		require.NoError(t, asks.Start())
		s.eventually("it waits", func() error { return s.openNext("web") })
		require.NoError(t, asks.Process.Kill())
		_ = asks.Wait() // killed
		code, out = s.code("start", "web", "--queue")
		require.Equal(t, 4, code, out)
		require.Contains(t, out, "PowerServer waits for it already")

		s.run("cancel", "server/web")
		s.eventually("its turn has come and gone", func() error {
			if err := s.openNext("web"); err == nil {
				return fmt.Errorf("it still waits")
			}
			d := s.describe("server/web")
			if d.Status != enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED {
				return fmt.Errorf("%s", d.Status)
			}
			return nil
		})
		require.NotEqual(t, pid, s.guestPID("web"), "it was restarted, although who asked was killed")
	})

	s.run("delete", "server/web", "-y")
	require.Empty(t, difference(s.census(), before))
	require.Empty(t, difference(before, s.census()))
}

// openNext is nil while an operation waits for the server.
func (s *stack) openNext(server string) error {
	d, err := s.temporal().DescribeWorkflow(s.t.Context(), workflows.NextID("server/"+server), "")
	if err != nil {
		return err
	}
	if d.Status != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
		return fmt.Errorf("%s", strings.ToLower(d.Status.String()))
	}
	return nil
}
