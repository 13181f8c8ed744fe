package worker

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"burrow.dev/burrow/internal/config"
	"burrow.dev/burrow/internal/devstacktest"
	"burrow.dev/burrow/internal/etcdstate"
	"burrow.dev/burrow/internal/gateway"
	"burrow.dev/burrow/manifest"
)

// manyServers is what one installation is made for.
const manyServers = 10_000

// BenchmarkGetServers: `burrow get servers` of 10,000 records from the program's start to
// its end, against a worker's gateway in a process of its own and a real etcd; goal
// < 300 ms, memory bounded on both sides. The program is bin/burrow. "first-ms" is the
// gateway's first such call, which makes the summaries. "cpu" is the program's own time,
// which a busy machine does not stretch.
func BenchmarkGetServers(b *testing.B) {
	l := newListing(b)
	for _, args := range [][]string{{"get", "servers"}, {"get", "servers", "-l", "role=web"}, {"get", "servers", "-o", "name"}, {"get", "servers", "-o", "json"}} {
		b.Run(strings.Join(args[1:], "_"), func(b *testing.B) {
			first := l.burrow(b, args...)
			var took []time.Duration
			var cpu time.Duration
			var peak int64
			for b.Loop() {
				r := l.burrow(b, args...)
				took = append(took, r.took)
				cpu += r.cpu
				peak = max(peak, r.peak)
				require.GreaterOrEqual(b, r.lines, manyServers/2)
			}
			slices.Sort(took)
			b.ReportMetric(float64(first.took.Milliseconds()), "first-ms")
			b.ReportMetric(float64(took[len(took)/2].Milliseconds()), "p50-ms")
			b.ReportMetric(float64(cpu.Milliseconds())/float64(len(took)), "cpu-ms/op")
			b.ReportMetric(float64(peak>>20), "cli-peak-MiB")
			b.ReportMetric(float64(l.gatewayPeak(b)>>20), "gateway-peak-MiB")
		})
	}
}

// listing is an etcd with many records, a gateway process, and a client configuration.
type listing struct {
	config  string
	gateway *exec.Cmd
}

func newListing(b *testing.B) *listing {
	b.Helper()
	endpoint := devstacktest.Etcd(b)
	store, err := etcdstate.Open(config.Etcd{Endpoints: []string{endpoint}}, etcdstate.Options{})
	require.NoError(b, err)
	b.Cleanup(func() { _ = store.Close() })
	group, ctx := errgroup.WithContext(b.Context())
	group.SetLimit(64)
	for i := range manyServers {
		group.Go(func() error {
			_, err := store.Create(ctx, typicalServer(i))
			return err
		})
	}
	require.NoError(b, group.Wait())

	dir, err := os.MkdirTemp("", "list") // b.TempDir is too long for a socket
	require.NoError(b, err)
	b.Cleanup(func() { _ = os.RemoveAll(dir) })
	l := &listing{config: filepath.Join(dir, "client.json")}
	cfg := config.Client{Gateway: config.Gateway{Socket: filepath.Join(dir, "gw")}}
	encoded, err := json.Marshal(cfg)
	require.NoError(b, err)
	require.NoError(b, os.WriteFile(l.config, encoded, 0o600))
	l.gateway = exec.Command(os.Args[0], "-test.run=^TestGatewayProcess$")
	l.gateway.Env = append(os.Environ(), asGateway+"="+endpoint+" "+cfg.Gateway.Socket)
	out, err := l.gateway.StdoutPipe()
	require.NoError(b, err)
	require.NoError(b, l.gateway.Start())
	b.Cleanup(func() { _ = l.gateway.Process.Kill(); _ = l.gateway.Wait() })
	lines := bufio.NewScanner(out)
	require.True(b, lines.Scan(), "the gateway did not start")
	return l
}

// ran is how a run of the program went; peak is its memory in bytes.
type ran struct {
	took, cpu time.Duration
	lines     int
	peak      int64
}

func (l *listing) burrow(b *testing.B, args ...string) ran {
	b.Helper()
	cmd := exec.Command("../bin/burrow", args...)
	cmd.Env = append(os.Environ(), "BURROW_CONFIG="+l.config)
	var lines lineCount
	var errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &lines, &errOut
	started := time.Now()
	require.NoError(b, cmd.Start())
	ended, peak := make(chan struct{}), make(chan int64, 1)
	go func() { // what rusage tells of a child begins with its parent's memory
		var seen int64
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for {
			if now, err := peakOf(cmd.Process.Pid); err == nil {
				seen = now
			}
			select {
			case <-ended:
				peak <- seen
				return
			case <-tick.C:
			}
		}
	}()
	err := cmd.Wait()
	took := time.Since(started)
	close(ended)
	require.NoError(b, err, "%s", &errOut)
	return ran{took: took, cpu: cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), lines: int(lines), peak: <-peak}
}

// lineCount counts what is written to it.
type lineCount int

func (n *lineCount) Write(p []byte) (int, error) {
	*n += lineCount(bytes.Count(p, []byte("\n")))
	return len(p), nil
}

func (l *listing) gatewayPeak(b *testing.B) int64 {
	b.Helper()
	peak, err := peakOf(l.gateway.Process.Pid)
	require.NoError(b, err)
	return peak
}

// peakOf gives the most memory that a running process has had, in bytes.
func peakOf(pid int) (int64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	_, after, ok := strings.Cut(string(status), "VmHWM:")
	if !ok {
		return 0, fmt.Errorf("process %d has ended", pid)
	}
	kib, err := strconv.ParseInt(strings.Fields(after)[0], 10, 64)
	return kib << 10, err
}

// asGateway makes this test binary a worker's gateway: "ETCD SOCKET".
const asGateway = "BURROW_TEST_GATEWAY"

// TestGatewayProcess is no test: it is the gateway of the benchmark, in a process whose
// memory can be measured.
func TestGatewayProcess(t *testing.T) {
	endpoint, socket, ok := strings.Cut(os.Getenv(asGateway), " ")
	if !ok {
		t.Skip("run by BenchmarkGetServers")
	}
	store, err := etcdstate.Open(config.Etcd{Endpoints: []string{endpoint}}, etcdstate.Options{})
	require.NoError(t, err)
	cfg := config.Gateway{Socket: socket}
	go func() {
		for {
			if c, err := gateway.Dial(t.Context(), cfg); err == nil {
				_ = c.Close()
				fmt.Println("serves")
				return
			}
		}
	}()
	require.NoError(t, gateway.NewServer(gateway.Deps{Records: NewRecords(store), Log: slog.New(slog.DiscardHandler)}).Serve(context.Background(), cfg))
}

// typicalServer is a record as large as those of servers with two networks, two disks, a
// key and a playbook: 3.5 KiB.
func typicalServer(i int) manifest.Record {
	name := fmt.Sprintf("web-%05d", i)
	spec := manifest.ServerSpec{
		CPU: 2, Memory: 4096, Image: "debian12", Autostart: true, Readiness: manifest.ReadinessCloudInit, Firmware: "bios",
		BootVolume:       manifest.BootVolume{Type: "qcow2", Size: 20},
		Storage:          []manifest.Storage{{Name: name + "-data"}},
		NetworkInterface: []manifest.NIC{{Network: "host-bridge"}, {Network: "app-net"}},
		Ansible:          &manifest.Ansible{Playbook: []string{"playbook/web.yaml"}, Inventory: "playbook/hosts.yaml", Timeout: "30m"},
	}
	encoded, _ := json.Marshal(spec)
	port := func(index int, network string) manifest.Port {
		return manifest.Port{
			Name: network + "-0", Index: index, Network: network, NetworkUID: uuid.NewString(), MAC: fmt.Sprintf("52:54:00:%02x:%02x:%02x", index, i>>8, i&255),
			Device: fmt.Sprintf("bw%010x", i), Bridge: "br-" + network, Addresses: []string{fmt.Sprintf("10.%d.%d.%d/16", index, i>>8, i&255)},
			Gateways: []string{"10.0.0.1"}, Nameservers: []string{"10.0.0.1"}, Search: []string{network + ".internal"}, MTU: 1450, Security: true,
		}
	}
	disk := func(name, target string) manifest.Disk {
		return manifest.Disk{
			Name: name, Target: target, Pool: "burrow", Volume: uuid.NewString() + "-" + name + ".qcow2", Path: "/var/lib/burrow/pool/" + uuid.NewString() + ".qcow2",
			Format: "qcow2", Serial: "bw" + name, SizeGiB: 20, Owned: true,
			Backing: []manifest.Backing{{Path: "/var/lib/burrow/pool/img-" + strings.Repeat("a", 64) + ".qcow2", Format: "qcow2"}},
		}
	}
	return manifest.Record{
		APIVersion: manifest.APIVersion, Kind: manifest.KindServer, Spec: encoded,
		Metadata: manifest.RecordMeta{
			Metadata: manifest.Metadata{Name: name, Comment: "web server of the shop", Labels: map[string]string{"role": []string{"web", "db"}[i%2], "team": "shop"}},
			UID:      uuid.NewString(), Generation: 3, CreatedAt: time.Now().Add(-time.Hour).UTC(), CreatedBy: "ann@desk",
		},
		Status: manifest.Status{
			Phase: manifest.PhaseRunning, ObservedGeneration: 3, Host: fmt.Sprintf("kvm%02d", i%50), Addresses: []string{"10.0.0.2"},
			Ports: []manifest.Port{port(0, "host-bridge"), port(1, "app-net")}, Disks: []manifest.Disk{disk("boot", "vda"), disk("data", "vdb")},
			Seed: "/var/lib/burrow/seeds/" + uuid.NewString() + ".iso", Login: "debian", Bundle: "sha256:" + strings.Repeat("b", 64),
			HostKeys: []string{"ssh-ed25519 " + strings.Repeat("A", 68), "ecdsa-sha2-nistp256 " + strings.Repeat("B", 140)},
			Playbook: &manifest.PlaybookStatus{RunID: uuid.NewString(), LogKey: "runs/" + uuid.NewString(), OK: true, EndedAt: time.Now().UTC(), Recap: map[string]manifest.Recap{name: {OK: 31, Changed: 12}}},
		},
	}
}
