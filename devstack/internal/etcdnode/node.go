package etcdnode

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
)

const (
	// memberName is recorded in the data folder and must not change.
	memberName = "burrow"
	// compactionRetention keeps an hour of revisions: a watcher that was away for
	// less resumes without reading everything again.
	compactionRetention = "1h"
	// quotaBytes is etcd's own advice for the largest backend with default settings.
	quotaBytes = 8 << 30
	// workerCommonName is the only certificate name that may talk to etcd: the CLI's
	// certificate, which a whole group can read, is signed by the same authority.
	workerCommonName = "burrow-worker"
	// serverCommonName is the only certificate name that may be a peer.
	serverCommonName = "burrow-server"
)

// Config says where the member keeps its data and where it listens.
type Config struct {
	// Dir is the data folder; made with mode 0700 when absent.
	Dir string
	// Host and Port of the client listener; Port must not be 0.
	Host string
	Port int
	// TLS nil means plain text without any authentication: tests only.
	TLS *TLS
	// UnsafeNoFsync trades durability for speed: tests only.
	UnsafeNoFsync bool
	// QuotaBytes is the largest backend; 0 is etcd's own advice, 8 GiB.
	QuotaBytes int64
	// Cluster nil is a member alone.
	Cluster *Cluster
	// LogLevel is zap's: "warn", "info", …
	LogLevel string
}

// TLS names the PEM files of the client listener; client certificates are required.
type TLS struct {
	CA, Cert, Key string
}

// Node is a running member.
type Node struct {
	etcd     *embed.Etcd
	endpoint string
}

// errForeignData means that the data folder was made as a member of another cluster.
var errForeignData = errors.New("the data belong to another cluster")

// Start runs the member and returns when it serves reads and writes. The process's
// working folder becomes cfg.Dir: unix socket paths are limited to 108 bytes, so
// they are given relative to it.
func Start(ctx context.Context, cfg Config) (*Node, error) {
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("etcd: make data folder %s: %w", cfg.Dir, err)
	}
	dir, err := filepath.Abs(cfg.Dir)
	if err != nil {
		return nil, fmt.Errorf("etcd: data folder %s: %w", cfg.Dir, err)
	}
	if err := os.Chdir(dir); err != nil {
		return nil, fmt.Errorf("etcd: enter data folder: %w", err)
	}
	settings, endpoint := cfg.embedded(dir)
	etcd, err := embed.StartEtcd(settings)
	if err != nil {
		return nil, fmt.Errorf("etcd: start on %s with data in %s: %w", endpoint, dir, err)
	}
	node := &Node{etcd: etcd, endpoint: endpoint}
	select {
	case <-etcd.Server.ReadyNotify():
		if err := cfg.Cluster.owns(etcd); err != nil {
			etcd.Close()
			return nil, fmt.Errorf("etcd: start with data in %s: %w", dir, err)
		}
		return node, nil
	case err := <-etcd.Err():
		etcd.Close()
		return nil, fmt.Errorf("etcd: serve on %s: %w", endpoint, err)
	case <-ctx.Done():
		etcd.Close()
		return nil, fmt.Errorf("etcd: wait until %s serves%s: %w", endpoint, cfg.Cluster.hint(), context.Cause(ctx))
	}
}

// embedded translates the configuration; endpoint is the client URL.
func (c Config) embedded(dir string) (settings *embed.Config, endpoint string) {
	scheme := "http"
	settings = embed.NewConfig()
	if c.TLS != nil {
		scheme = "https"
		settings.ClientTLSInfo.CertFile = c.TLS.Cert
		settings.ClientTLSInfo.KeyFile = c.TLS.Key
		settings.ClientTLSInfo.TrustedCAFile = c.TLS.CA
		settings.ClientTLSInfo.ClientCertAuth = true
		settings.ClientTLSInfo.AllowedCNs = []string{workerCommonName}
		settings.TlsMinVersion = "TLS1.3"
	}
	clients := url.URL{Scheme: scheme, Host: fmt.Sprintf("%s:%d", c.Host, c.Port)}
	peers := url.URL{Scheme: "unix", Host: "peer.sock"}

	settings.Name = memberName
	settings.Dir = dir
	settings.ListenClientUrls = []url.URL{clients}
	settings.AdvertiseClientUrls = []url.URL{clients}
	settings.ListenPeerUrls = []url.URL{peers}
	settings.AdvertisePeerUrls = []url.URL{peers}
	settings.ListenClientHttpUrls = []url.URL{{Scheme: "unix", Host: "http.sock"}}
	settings.InitialCluster = settings.InitialClusterFromName(memberName)
	settings.EnableGRPCGateway = false
	settings.AutoCompactionMode = embed.CompactorModePeriodic
	settings.AutoCompactionRetention = compactionRetention
	settings.QuotaBackendBytes = quotaBytes
	if c.QuotaBytes > 0 {
		settings.QuotaBackendBytes = c.QuotaBytes
	}
	settings.UnsafeNoFsync = c.UnsafeNoFsync
	settings.LogLevel = c.LogLevel
	settings.LogOutputs = []string{"stderr"}
	c.Cluster.join(settings, c.TLS)
	return settings, clients.String()
}

// Endpoint is the client URL.
func (n *Node) Endpoint() string { return n.endpoint }

// Err delivers the error that ended a listener; it is closed after Stop.
func (n *Node) Err() <-chan error { return n.etcd.Err() }

// Stop ends client connections, then the member, or gives up when ctx ends.
// What was acknowledged is on disk either way.
func (n *Node) Stop(ctx context.Context) error {
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		n.etcd.Close()
	}()
	select {
	case <-closed:
		return nil
	case <-ctx.Done():
		return errors.Join(fmt.Errorf("etcd: stop %s", n.endpoint), context.Cause(ctx))
	}
}

// StopGrace is how long a stop may take: etcd itself gives open requests 5 s at most.
const StopGrace = 6 * time.Second
