package devstacktest

import (
	"context"
	"crypto/tls"
	"fmt"
	"math/rand/v2"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"burrow.dev/burrow/internal/config"
	"burrow.dev/burrow/internal/pki"
)

const (
	// Ports of members are below those that the kernel gives to outgoing connections, so
	// that none of these takes a member's port while the member is dead.
	memberPortFirst = 10_000
	memberPortEnd   = 32_000
	// portTries is how often other ports are tried when another test takes one first.
	portTries = 5
)

// ClusterOptions of StartEtcdCluster. The zero value is a cluster without TLS and fsync.
type ClusterOptions struct {
	// TLSDir has certificates made by pki.Ensure; clients and peers are asked for them.
	TLSDir string
	// QuotaBytes is the largest backend; 0 is 8 GiB.
	QuotaBytes int64
	// Fsync makes writes durable against a loss of power, as in production: benchmarks.
	// Kills of the process lose nothing either way.
	Fsync bool
}

// EtcdCluster is some etcd members on loopback, each a process that may be killed, stopped
// and started again. Its methods fail the test: call them from the test's own goroutine.
type EtcdCluster struct {
	t       testing.TB
	opts    ClusterOptions
	tls     *tls.Config
	clients []string // client URLs
	peers   []string // peer URLs
	folders []string

	mu      sync.Mutex
	members []*Process // nil while dead
}

// StartEtcdCluster starts an empty etcd of some members (1 or 3, say) and returns when all
// serve. No process and no folder is left when the test ends.
func StartEtcdCluster(t testing.TB, members int, opts ...ClusterOptions) *EtcdCluster {
	t.Helper()
	c := &EtcdCluster{t: t, members: make([]*Process, members)}
	if len(opts) > 0 {
		c.opts = opts[0]
	}
	if c.opts.TLSDir != "" {
		var err error
		c.tls, err = pki.Files(c.opts.TLSDir, "worker").Client()
		require.NoError(t, err)
	}
	base := t.TempDir()
	t.Cleanup(c.end) // before the folder goes
	all := make([]int, members)
	var err error
	for try := range portTries {
		c.folders = nil
		for i := range members {
			all[i] = i
			c.folders = append(c.folders, filepath.Join(base, fmt.Sprintf("%d-%d", try, i)))
		}
		if err = c.choosePorts(); err != nil {
			continue
		}
		if err = c.start(all); err == nil {
			c.AwaitHealthy(t.Context())
			return c
		}
		c.end()
		if !strings.Contains(err.Error(), "the port is held") {
			break
		}
	}
	require.NoError(t, err)
	return nil
}

// Endpoints are the client URLs of all members, whether they live or not.
func (c *EtcdCluster) Endpoints() []string { return append([]string(nil), c.clients...) }

// Config is what a worker would have in worker.json.
func (c *EtcdCluster) Config() config.Etcd {
	cfg := config.Etcd{Endpoints: c.Endpoints()}
	if c.opts.TLSDir != "" {
		cfg.TLS = pki.Files(c.opts.TLSDir, "worker")
	}
	return cfg
}

// Kill ends members as a crash would, and returns when they are gone.
func (c *EtcdCluster) Kill(members ...int) {
	c.t.Helper()
	for _, i := range members {
		require.NoError(c.t, c.take(i).Kill())
	}
}

// Restart starts dead members again, together, with their data and on their ports, and
// returns when they serve: a majority must then live.
func (c *EtcdCluster) Restart(members ...int) {
	c.t.Helper()
	require.NoError(c.t, c.start(members))
}

// Stop stops a member's process as a frozen machine would; its connections stay open.
func (c *EtcdCluster) Stop(i int) {
	c.t.Helper()
	require.NoError(c.t, c.process(i).command.Process.Signal(syscall.SIGSTOP))
}

// Continue lets a stopped member run on.
func (c *EtcdCluster) Continue(i int) {
	c.t.Helper()
	require.NoError(c.t, c.process(i).command.Process.Signal(syscall.SIGCONT))
}

// choosePorts finds free ports for all members.
func (c *EtcdCluster) choosePorts() error {
	c.clients, c.peers = nil, nil
	scheme := "http"
	if c.opts.TLSDir != "" {
		scheme = "https"
	}
	var open []net.Listener
	defer func() {
		for _, l := range open {
			_ = l.Close()
		}
	}()
	free := func() (string, error) {
		var err error
		for range portTries {
			address := fmt.Sprintf("127.0.0.1:%d", memberPortFirst+rand.N(memberPortEnd-memberPortFirst))
			var l net.Listener
			if l, err = net.Listen("tcp", address); err == nil {
				open = append(open, l)
				return scheme + "://" + address, nil
			}
		}
		return "", err
	}
	for range c.members {
		client, err := free()
		if err != nil {
			return err
		}
		peer, err := free()
		if err != nil {
			return err
		}
		c.clients, c.peers = append(c.clients, client), append(c.peers, peer)
	}
	return nil
}

// start starts members at the same time: one alone does not get ready.
func (c *EtcdCluster) start(members []int) error {
	var group errgroup.Group
	for _, i := range members {
		if c.alive(i) {
			continue
		}
		group.Go(func() error {
			process, err := Start(context.WithoutCancel(c.t.Context()), c.arguments(i)...)
			if err != nil {
				return err
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			c.members[i] = process
			return nil
		})
	}
	return group.Wait()
}

func (c *EtcdCluster) arguments(i int) []string {
	args := []string{"etcd", "--data-dir", c.folders[i], "--listen-client", c.clients[i], "--log-level", "error"}
	if len(c.members) > 1 {
		var all []string
		for n, peer := range c.peers {
			all = append(all, fmt.Sprintf("m%d=%s", n, peer))
		}
		args = append(args, "--name", fmt.Sprintf("m%d", i), "--initial-cluster", strings.Join(all, ","))
	}
	if c.opts.TLSDir != "" {
		args = append(args, "--tls-dir", c.opts.TLSDir)
	}
	if c.opts.QuotaBytes > 0 {
		args = append(args, "--quota-bytes", fmt.Sprint(c.opts.QuotaBytes))
	}
	if !c.opts.Fsync {
		args = append(args, "--unsafe-no-fsync")
	}
	return args
}

func (c *EtcdCluster) alive(i int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.members[i] != nil
}

// process gives a member that must live.
func (c *EtcdCluster) process(i int) *Process {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	require.NotNil(c.t, c.members[i], "etcd member %d is dead", i)
	return c.members[i]
}

// take gives a member that must live, and counts it dead.
func (c *EtcdCluster) take(i int) *Process {
	c.t.Helper()
	p := c.process(i)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.members[i] = nil
	return p
}

// end kills what lives: a member that must hand over its leadership, or that is stopped,
// would take its time, and nobody needs its data.
func (c *EtcdCluster) end() {
	for i := range c.members {
		if c.alive(i) {
			c.Kill(i)
		}
	}
}
