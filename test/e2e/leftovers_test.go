package e2e

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"burrow.dev/burrow/internal/config"
)

// census lists everything a server leaves traces in: domains, volumes, seeds, ports,
// flows, namespaces, links, records, addresses, reservations, secrets, run folders,
// processes of playbooks and files in the temporary folder. Sorted lines, comparable.
func (s *stack) census() []string {
	s.t.Helper()
	var all []string
	list := func(kind, command string, args ...string) {
		out, err := exec.CommandContext(s.t.Context(), command, args...).CombinedOutput()
		require.NoError(s.t, err, "%s: %s", kind, out)
		for line := range strings.Lines(string(out)) {
			if line = strings.TrimSpace(line); line != "" {
				all = append(all, kind+": "+line)
			}
		}
	}
	list("domain", "virsh", "-c", "qemu:///system", "list", "--all", "--name")
	list("port", "ovs-vsctl", "--bare", "--columns=name", "list", "port")
	list("bridge", "ovs-vsctl", "--bare", "--columns=name", "list", "bridge")
	list("namespace", "ip", "netns", "list")
	list("nft", "sh", "-c", "nft list tables 2>/dev/null")
	list("pool", "sh", "-c", "ls "+filepath.Join(s.data, "pool"))
	list("seed", "sh", "-c", "ls "+filepath.Join(s.data, "seeds")+" 2>/dev/null || true")
	list("console", "sh", "-c", "ls "+filepath.Join(s.data, "consoles")+" 2>/dev/null || true")
	list("run", "sh", "-c", "ls "+filepath.Join(s.data, "runs")+" 2>/dev/null || true")
	list("temp", "sh", "-c", "ls "+s.temp)
	for _, pid := range s.ours(func(c string) bool {
		return strings.Contains(c, "ansible-playbook") || strings.Contains(c, "qemu-system") || strings.Contains(c, "dnsmasq")
	}) {
		comm, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "comm"))
		if err == nil {
			all = append(all, "process: "+strings.TrimSpace(string(comm)))
		}
	}
	for _, key := range s.etcdKeys() {
		all = append(all, "etcd: "+key)
	}
	sort.Strings(all)
	return all
}

// etcdKeys lists the keys that are to be compared. Quarantined addresses and locks come
// and go with their leases; cursors and block counts are bookkeeping of their network.
func (s *stack) etcdKeys() []string {
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
	ctx, cancel := context.WithTimeout(s.t.Context(), 10*time.Second)
	defer cancel()
	res, err := c.Get(ctx, cfg.Etcd.Prefix, clientv3.WithPrefix(), clientv3.WithKeysOnly())
	require.NoError(s.t, err)
	var keys []string
	for _, kv := range res.Kvs {
		key := strings.TrimPrefix(string(kv.Key), cfg.Etcd.Prefix+"/")
		transient := strings.HasPrefix(key, "locks/") || strings.HasPrefix(key, "alive/") || strings.Contains(key, "/q/") ||
			strings.HasPrefix(key, "keyholders/") || key == "masterkey" || // which master keys there are
			strings.Contains(key, "/cursor/") || strings.Contains(key, "/b/") ||
			strings.HasPrefix(key, "deleted/") || strings.HasPrefix(key, "sweep/") // what sweeps remember
		if !transient {
			keys = append(keys, key)
		}
	}
	return keys
}

// difference gives the lines that are in a and not in b.
func difference(a, b []string) []string {
	in := map[string]int{}
	for _, line := range b {
		in[line]++
	}
	var only []string
	for _, line := range a {
		if in[line] == 0 {
			only = append(only, line)
		} else {
			in[line]--
		}
	}
	return only
}
