package bench

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"burrow.dev/burrow/test/lab"
)

func TestMain(m *testing.M) { lab.Main(m, lab.OVS, lab.Libvirt, lab.Internet) }

const dataDir = "/var/lib/burrow"

// burrow runs the built program and gives what it printed.
func burrow(tb testing.TB, args ...string) string {
	tb.Helper()
	program, err := filepath.Abs("../../bin/burrow")
	require.NoError(tb, err)
	cmd := exec.Command(program, args...)
	cmd.Env = append(os.Environ(), "BURROW_CONFIG="+filepath.Join(dataDir, "client.json"))
	out, err := cmd.CombinedOutput()
	require.NoError(tb, err, "burrow %s: %s", strings.Join(args, " "), out)
	return string(out)
}

func up(tb testing.TB) {
	tb.Helper()
	burrow(tb, "up", "--detach", "--data-dir", dataDir)
	tb.Cleanup(func() { burrow(tb, "down", "--data-dir", dataDir) })
}

// BenchmarkCommandStart: goal < 50 ms.
func BenchmarkCommandStart(b *testing.B) {
	for b.Loop() {
		burrow(b, "version")
	}
}

// BenchmarkValidate: goal < 50 ms.
func BenchmarkValidate(b *testing.B) {
	for b.Loop() {
		burrow(b, "validate", "-f", "../../examples/quickstart")
	}
}

// BenchmarkUp: from nothing to ready; goal < 5 s.
func BenchmarkUp(b *testing.B) {
	for b.Loop() {
		burrow(b, "up", "--detach", "--data-dir", dataDir)
		b.StopTimer()
		burrow(b, "down", "--data-dir", dataDir)
		require.NoError(b, os.RemoveAll(filepath.Join(dataDir, "etcd")))
		b.StartTimer()
	}
}

const manifest = `apiVersion: v1
kind: Server
metadata: {name: bench}
spec: {cpu: 1, memory: 256, mmImage: debian12, readiness: running}
`

// BenchmarkApplyToRunning: a server with its image cached, without key URL and playbook,
// from apply to a running, wired domain; goal < 2 s. "plain" is the same by hand.
func BenchmarkApplyToRunning(b *testing.B) {
	up(b)
	burrow(b, "image", "build", "debian12")
	file := filepath.Join(b.TempDir(), "bench.yaml")
	require.NoError(b, os.WriteFile(file, []byte(manifest), 0o600))
	image := poolImage(b)
	var ours, plain time.Duration
	n := 0
	for b.Loop() {
		started := time.Now()
		burrow(b, "apply", "-f", file)
		ours += time.Since(started)
		b.StopTimer()
		burrow(b, "delete", "server", "bench", "-y")
		plain += byHand(b, image)
		n++
		b.StartTimer()
	}
	b.ReportMetric(float64(plain.Milliseconds())/float64(n), "plain-ms/op")
	b.ReportMetric(float64((ours-plain).Milliseconds())/float64(n), "engine-ms/op")
	b.ReportMetric(float64(ours)/float64(plain), "ratio")
}

func poolImage(b *testing.B) string {
	found, err := filepath.Glob(filepath.Join(dataDir, "pool", "img-*.qcow2"))
	require.NoError(b, err)
	require.Len(b, found, 1)
	return found[0]
}

// byHand makes the same server with plain tools and takes it away again; only the making
// is measured.
func byHand(b *testing.B, image string) time.Duration {
	b.Helper()
	dir := b.TempDir()
	require.NoError(b, os.Chmod(dir, 0o755))
	script := fmt.Sprintf(`set -e
cd %[1]s
printf 'instance-id: x\n' > meta-data; printf '#cloud-config\n' > user-data
qemu-img create -q -f qcow2 -F qcow2 -b %[2]s /var/lib/burrow/pool/plain.qcow2 10G
genisoimage -quiet -o /var/lib/burrow/pool/plain.iso -V cidata -r -J meta-data user-data
ovs-vsctl --may-exist add-br br-plain -- set bridge br-plain datapath_type=netdev
cat > d.xml <<X
<domain type='qemu'><name>plain</name><memory unit='MiB'>256</memory><vcpu>1</vcpu><os><type machine='q35'>hvm</type></os>
<devices><disk type='file'><driver name='qemu' type='qcow2'/><source file='/var/lib/burrow/pool/plain.qcow2'/><target dev='vda' bus='virtio'/></disk>
<disk type='file' device='cdrom'><source file='/var/lib/burrow/pool/plain.iso'/><target dev='sda' bus='sata'/></disk>
<interface type='bridge'><source bridge='br-plain'/><virtualport type='openvswitch'/><model type='virtio'/></interface></devices></domain>
X
virsh -q -c qemu:///system define d.xml
virsh -q -c qemu:///system start plain
ovs-vsctl set port "$(virsh -q -c qemu:///system domiflist plain | awk '{print $1}')" tag=10
`, dir, image)
	started := time.Now()
	out, err := exec.Command("sh", "-c", script).CombinedOutput()
	took := time.Since(started)
	require.NoError(b, err, "%s", out)
	out, err = exec.Command("sh", "-c", `virsh -q -c qemu:///system destroy plain; virsh -q -c qemu:///system undefine plain
ovs-vsctl --if-exists del-br br-plain; rm -f /var/lib/burrow/pool/plain.*`).CombinedOutput()
	require.NoError(b, err, "%s", out)
	return took
}
