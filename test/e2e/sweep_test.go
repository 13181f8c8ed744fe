package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/activities/sweep"
	"burrow.dev/burrow/internal/config"
	"burrow.dev/burrow/manifest"
	"burrow.dev/burrow/workflows"
)

// sweepManifest is a server of an empty disk: it runs, and that is all it does.
const sweepManifest = `apiVersion: v1
kind: Server
metadata: {name: %s}
spec:
  cpu: 1
  memory: 128
  mmImage: empty
  readiness: %s
  networkInterface: [{networkname: sweep-net}]
`

const sweepNetwork = `apiVersion: v1
kind: Network
metadata: {name: sweep-net}
spec: {mode: isolated}
`

// TestALostHistoryLeavesAConsistentWorldAndForeignThingsAlone is the promise of sweep on the
// real stack: Temporal's store is lost while operations are under way, orphans of known and
// of unknown owners turn up, and things that only look like ours stand beside them.
func TestALostHistoryLeavesAConsistentWorldAndForeignThingsAlone(t *testing.T) {
	s := newStack(t)
	s.emptyImage("empty")
	s.applyText(sweepNetwork)
	s.pauseSchedules()
	s.applyText(fmt.Sprintf(sweepManifest, "keep", "running"))
	keep := s.running("keep")
	pid := s.guestPID("keep")
	before := s.census()

	s.foreign(keep)
	withForeign := s.census()

	t.Run("history lost", func(t *testing.T) {
		for _, name := range []string{"off", "del", "held"} {
			s.applyText(fmt.Sprintf(sweepManifest, name, "running"))
		}
		s.applyText(fmt.Sprintf(sweepManifest, "build", "ssh"), "--detach") // nobody will ever answer
		s.eventually("build waits for its guest", func() error { return s.atStep("build", "wait until ready") })
		s.run("stop", "off", "--grace", "3600", "--detach") // an empty disk obeys no power button
		s.eventually("off is asked to power off", func() error { return s.atStep("off", "shut down") })
		s.hold("held")
		s.signal("libvirtd", syscall.SIGSTOP)
		s.run("delete", "server/del", "-y", "--detach")
		s.eventually("del waits for libvirt", func() error { return s.atStep("del", "remove domain") })
		s.loseHistory(func() { s.signal("libvirtd", syscall.SIGCONT) })
		s.pauseSchedules()

		code, out := s.code("drift")
		require.Equal(t, 3, code, out)
		for _, name := range []string{"build", "del", "held", "off"} {
			require.Contains(t, out, "server/"+name)
		}
		out = s.run("sweep")
		build, _ := s.record("server", "build")
		require.Equal(t, manifest.PhaseFailed, build.Status.Phase, out)
		_, there := s.record("server", "del")
		require.False(t, there, out)
		off, _ := s.record("server", "off")
		require.Equal(t, manifest.PhaseRunning, off.Status.Phase, out)
		held, _ := s.record("server", "held")
		require.Equal(t, manifest.PhaseRunning, held.Status.Phase, out)
		require.True(t, slices.ContainsFunc(held.Status.Conditions, func(c manifest.Condition) bool { return c.Type == manifest.ConditionUnfinished }))
		require.Equal(t, pid, s.guestPID("keep"), "a running server is untouched")

		s.run("delete", "server/build", "server/off", "server/held", "-y")
		require.Empty(t, difference(s.census(), withForeign))
		require.Empty(t, difference(withForeign, s.census()))
	})

	t.Run("orphans of a deleted server", func(t *testing.T) {
		s.applyText(fmt.Sprintf(sweepManifest, "gone", "running"))
		gone := s.running("gone")
		xml := s.output("virsh", "-c", "qemu:///system", "dumpxml", "--inactive", "gone")
		s.run("delete", "server/gone", "-y")
		s.leave(gone, xml)
		code, out := s.code("drift")
		require.Equal(t, 3, code, out)
		for _, word := range []string{"domain gone", "volume " + gone.Status.Disks[0].Volume, "seed of", "OVS port " + gone.Status.Ports[0].Device} {
			require.Contains(t, out, word)
		}
		require.NotContains(t, out, "12345678", "a volume whose owner nobody knows is not listed as ours")
		again := s.sweep(0)
		require.NotEmpty(t, again.Findings)
		for _, f := range again.Findings {
			require.Equal(t, sweep.VerdictMended, f.Verdict, "%+v", f)
		}
		require.Empty(t, difference(s.census(), withForeign))
		require.Empty(t, difference(withForeign, s.census()))
	})

	t.Run("a server whose record is lost waits for a person's word", func(t *testing.T) {
		s.applyText(fmt.Sprintf(sweepManifest, "lost", "running"))
		lost := s.running("lost")
		guest := s.guestPID("lost")
		s.etcd(func(ctx context.Context, c *clientv3.Client, prefix string) {
			_, err := c.Delete(ctx, prefix+"/servers/lost")
			require.NoError(t, err)
		})
		for range 3 {
			for _, f := range s.sweep(0).Findings {
				require.Equal(t, sweep.VerdictAsk, f.Verdict, "%+v", f)
			}
		}
		require.Equal(t, guest, s.guestPID("lost"))
		out := s.run("sweep", "--remove", lost.Metadata.UID[:8], "-y")
		require.Contains(t, out, "removed")
		s.sweep(0) // what the guest's end has set free
		s.sweep(0)
		require.Empty(t, difference(s.census(), withForeign))
		require.Empty(t, difference(withForeign, s.census()))
	})

	t.Run("a record that cannot be read is named, and what may be its is kept", func(t *testing.T) {
		key, value := "/servers/keep", ""
		s.etcd(func(ctx context.Context, c *clientv3.Client, prefix string) {
			got, err := c.Get(ctx, prefix+key)
			require.NoError(t, err)
			value = string(got.Kvs[0].Value)
			_, err = c.Put(ctx, prefix+key, value[:len(value)/2])
			require.NoError(t, err)
		})
		s.applyText(fmt.Sprintf(sweepManifest, "beside", "running"))
		out := s.run("get", "servers")
		require.Regexp(t, `(?m)^beside +Running`, out)
		require.Regexp(t, `(?m)^keep +Damaged`, out)
		code, out := s.code("get", "server", "keep")
		require.NotZero(t, code)
		require.Contains(t, out, "burrow restore")
		for range 3 {
			for _, f := range s.sweep(0).Findings {
				require.Contains(t, []sweep.Verdict{sweep.VerdictNote, sweep.VerdictWait}, f.Verdict, "%+v", f)
			}
		}
		code, out = s.code("drift")
		require.Equal(t, 3, code, out)
		require.Contains(t, out, "its record cannot be read")
		require.Equal(t, pid, s.guestPID("keep"))
		s.run("delete", "server/beside", "-y")
		s.etcd(func(ctx context.Context, c *clientv3.Client, prefix string) {
			_, err := c.Put(ctx, prefix+key, value)
			require.NoError(t, err)
		})
		require.Empty(t, difference(s.census(), withForeign))
		require.Empty(t, difference(withForeign, s.census()))
	})

	t.Run("a server whose domain and boot disk are lost is rebuilt, as drift advises", func(t *testing.T) {
		s.applyText(fmt.Sprintf(sweepManifest, "bare", "running"))
		bare := s.running("bare")
		s.run("stop", "bare", "--grace", "0")
		s.output("virsh", "-c", "qemu:///system", "undefine", "bare")
		require.NoError(t, os.Remove(bare.Status.Disks[0].Path))
		code, out := s.code("drift", "server/bare")
		require.Equal(t, 3, code, out)
		require.Contains(t, out, "burrow rebuild bare")
		require.NotContains(t, out, "burrow start")
		s.run("rebuild", "bare", "-y")
		s.guestPID("bare")
		s.run("delete", "server/bare", "-y")
		require.Empty(t, difference(s.census(), withForeign))
		require.Empty(t, difference(withForeign, s.census()))
	})

	code, out := s.code("drift")
	require.Zero(t, code, out)
	require.Contains(t, s.run("doctor", "-o", "json"), `"sweep"`)
	s.removeForeign()
	require.Empty(t, difference(before, s.census()))
}

// emptyImage makes an image of a disk on which nothing is.
func (s *stack) emptyImage(name string) {
	s.t.Helper()
	file := filepath.Join(s.temp, "empty.qcow2")
	s.output("qemu-img", "create", "-q", "-f", "qcow2", file, "64M")
	s.run("image", "import", file, "--name", name)
	require.NoError(s.t, os.Remove(file))
}

func (s *stack) applyText(text string, flags ...string) {
	s.t.Helper()
	file := filepath.Join(s.t.TempDir(), "doc.yaml")
	require.NoError(s.t, os.WriteFile(file, []byte(text), 0o600))
	s.run(append([]string{"apply", "-f", file}, flags...)...)
}

func (s *stack) output(command string, args ...string) string {
	s.t.Helper()
	out, err := exec.CommandContext(s.t.Context(), command, args...).CombinedOutput()
	require.NoError(s.t, err, "%s %v: %s", command, args, out)
	return string(out)
}

// guestPID is the process of a server's guest.
func (s *stack) guestPID(name string) int {
	s.t.Helper()
	pids := s.ours(func(c string) bool {
		return strings.Contains(c, "qemu-system") && strings.Contains(c, "guest="+name+",")
	})
	require.Len(s.t, pids, 1)
	return pids[0]
}

// pauseSchedules keeps the sweeps that come by themselves out of the test.
func (s *stack) pauseSchedules() {
	s.t.Helper()
	c := s.temporal()
	s.eventually("schedules", func() error {
		for _, id := range []string{workflows.IDSweep, workflows.IDDrift} {
			if err := c.ScheduleClient().GetHandle(s.t.Context(), id).Pause(s.t.Context(), client.SchedulePauseOptions{}); err != nil {
				return err
			}
		}
		return nil
	})
}

// sweep sweeps with a grace that the command does not take.
func (s *stack) sweep(grace int) (out workflows.SweepOut) {
	s.t.Helper()
	run, err := s.temporal().ExecuteWorkflow(s.t.Context(), client.StartWorkflowOptions{
		ID: workflows.IDSweep, TaskQueue: activities.ControlQueue, WorkflowIDReusePolicy: enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
	}, workflows.NameSweep, workflows.SweepIn{GraceSeconds: grace})
	require.NoError(s.t, err)
	require.NoError(s.t, run.Get(s.t.Context(), &out))
	b, _ := json.MarshalIndent(out, "", " ")
	s.t.Logf("sweep: %s", b)
	return out
}

func (s *stack) atStep(server, step string) error {
	v, err := s.temporal().QueryWorkflow(s.t.Context(), "server/"+server, "", workflows.QueryProgress)
	if err != nil {
		return err
	}
	var p workflows.Progress
	if err := v.Get(&p); err != nil {
		return err
	}
	for _, st := range p.Steps {
		if st.Name == step && st.State == workflows.StepRunning {
			return nil
		}
	}
	return fmt.Errorf("%+v", p.Steps)
}

// signal signals a daemon of this test's hypervisor.
func (s *stack) signal(program string, signal syscall.Signal) {
	s.t.Helper()
	pids := s.ours(func(c string) bool { return filepath.Base(strings.Fields(c + " ")[0]) == program })
	require.NotEmpty(s.t, pids, program)
	for _, pid := range pids {
		require.NoError(s.t, syscall.Kill(pid, signal))
	}
}

// loseHistory kills everything at once and removes Temporal's store.
func (s *stack) loseHistory(between func()) {
	s.t.Helper()
	for {
		pids := s.ours(func(c string) bool {
			return strings.HasPrefix(c, s.burrow+" ") || strings.Contains(c, "burrow-devstack ")
		})
		if len(pids) == 0 {
			break
		}
		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		select {
		case <-s.t.Context().Done():
			require.NoError(s.t, s.t.Context().Err())
		case <-time.After(100 * time.Millisecond):
		}
	}
	require.DirExists(s.t, filepath.Join(s.data, "temporal"))
	require.NoError(s.t, os.RemoveAll(filepath.Join(s.data, "temporal")))
	between()
	s.start()
}

// etcd runs fn on this installation's etcd.
func (s *stack) etcd(fn func(ctx context.Context, c *clientv3.Client, prefix string)) {
	s.t.Helper()
	var cfg config.Worker
	b, err := os.ReadFile(filepath.Join(s.data, config.WorkerFile))
	require.NoError(s.t, err)
	require.NoError(s.t, json.Unmarshal(b, &cfg))
	tlsConfig, err := cfg.Etcd.TLS.Client()
	require.NoError(s.t, err)
	c, err := clientv3.New(clientv3.Config{Endpoints: cfg.Etcd.Endpoints, TLS: tlsConfig, DialTimeout: 5 * time.Second})
	require.NoError(s.t, err)
	defer c.Close()
	fn(s.t.Context(), c, cfg.Etcd.Prefix)
}

// hold makes a running server's record that of one whose playbook waits for a person.
func (s *stack) hold(name string) {
	s.t.Helper()
	s.etcd(func(ctx context.Context, c *clientv3.Client, prefix string) {
		key := prefix + "/servers/" + name
		got, err := c.Get(ctx, key)
		require.NoError(s.t, err)
		require.Len(s.t, got.Kvs, 1)
		var rec manifest.Record
		require.NoError(s.t, json.Unmarshal(got.Kvs[0].Value, &rec))
		rec.Status.Phase, rec.Status.Message = manifest.PhaseHeld, "a task failed"
		rec.Status.Operation = &manifest.Operation{WorkflowID: "server/" + name, RunID: "lost", Type: workflows.NameProvisionServer, Step: "run playbook"}
		b, err := json.Marshal(rec)
		require.NoError(s.t, err)
		_, err = c.Put(ctx, key, string(b))
		require.NoError(s.t, err)
	})
}

// leave puts back on the host what a server had there, as if its delete had overlooked it.
func (s *stack) leave(rec manifest.Record, xml string) {
	s.t.Helper()
	file := filepath.Join(s.t.TempDir(), "gone.xml")
	require.NoError(s.t, os.WriteFile(file, []byte(xml), 0o600))
	s.output("virsh", "-c", "qemu:///system", "define", file)
	s.output("qemu-img", "create", "-q", "-f", "qcow2", rec.Status.Disks[0].Path, "1M")
	mark := filepath.Join(s.data, "disks", filepath.Base(rec.Status.Disks[0].Path)) // that burrow made it
	require.NoError(s.t, os.WriteFile(mark, nil, 0o600))
	require.NoError(s.t, os.WriteFile(rec.Status.Seed, []byte("seed"), 0o600))
	port := rec.Status.Ports[0]
	s.output("ovs-vsctl", "add-port", port.Bridge, port.Device, "--", "set", "interface", port.Device, "type=internal",
		"external_ids:burrow-server="+rec.Metadata.UID, "external_ids:burrow-nic="+port.Name, "external_ids:burrow-network="+port.NetworkUID)
}

// foreign puts things of somebody else beside ours that look like ours.
func (s *stack) foreign(like manifest.Record) {
	s.t.Helper()
	pool := filepath.Dir(like.Status.Disks[0].Path)
	for _, name := range []string{"web-12345678-boot.qcow2", "vol-data-12345678.qcow2", "keep-" + like.Metadata.UID[:8] + "-boot-copy.qcow2"} {
		s.output("qemu-img", "create", "-q", "-f", "qcow2", filepath.Join(pool, name), "1M")
	}
	for name, uid := range map[string]string{"stranger": "", "web": "0b1f7d3e-0000-4000-8000-000000000000"} {
		mark := ""
		if uid != "" { // our mark, copied to a domain that is not ours
			mark = `<metadata><burrow:server xmlns:burrow="https://burrow.dev/xmlns/1" uid="` + uid + `" name="web"/></metadata>`
		}
		file := filepath.Join(s.t.TempDir(), name+".xml")
		require.NoError(s.t, os.WriteFile(file, []byte(`<domain type="qemu"><name>`+name+`</name>`+mark+
			`<memory unit="MiB">64</memory><os><type arch="x86_64">hvm</type></os></domain>`), 0o600))
		s.output("virsh", "-c", "qemu:///system", "define", file)
	}
	s.output("ovs-vsctl", "add-br", "br-strange", "--", "set", "bridge", "br-strange", "datapath_type=netdev",
		"--", "add-port", "br-strange", "bw0123456789", "--", "set", "interface", "bw0123456789", "type=internal",
		"--", "add-port", "br-strange", "bwother", "--", "set", "interface", "bwother", "type=internal",
		"external_ids:burrow-server=0b1f7d3e-0000-4000-8000-000000000000", "external_ids:burrow-nic=a-0")
}

func (s *stack) removeForeign() {
	for _, name := range []string{"stranger", "web"} {
		s.output("virsh", "-c", "qemu:///system", "undefine", name)
	}
	s.output("ovs-vsctl", "del-br", "br-strange")
}
