package temporalnode

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/server/common/authorization"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/log"
	"go.temporal.io/server/temporal"
)

const (
	// StopGrace is how long a stop may take; open long polls are cut after a second.
	StopGrace = 12 * time.Second
	// readinessProbe is how often the start asks whether the server serves.
	readinessProbe = 20 * time.Millisecond
	// probeTimeout bounds one such question.
	probeTimeout = 2 * time.Second
)

// Node is a running server.
type Node struct {
	server temporal.Server
	config Config
}

// Start runs the server and returns when every namespace of the configuration can
// start workflows: the frontend answers, the shard is owned, the attributes are there.
func Start(ctx context.Context, cfg Config) (*Node, error) {
	store := cfg.store()
	if err := prepare(cfg, store); err != nil {
		return nil, err
	}
	for _, namespace := range cfg.Namespaces {
		if err := namespace.createMissing(store); err != nil {
			return nil, err
		}
	}
	logger := log.NewZapLogger(log.BuildZapLogger(log.Config{Level: cfg.LogLevel, Format: cfg.LogFormat}))
	server, err := temporal.NewServer(
		temporal.WithConfig(cfg.server(store)),
		temporal.ForServices(temporal.DefaultServices),
		temporal.WithStaticHosts(cfg.hosts()),
		temporal.WithLogger(logger),
		temporal.WithAuthorizer(authorization.NewNoopAuthorizer()),
		temporal.WithClaimMapper(func(*config.Config) authorization.ClaimMapper { return authorization.NewNoopClaimMapper() }),
		temporal.WithDynamicConfigClient(dynamicConfig(cfg.Overrides)),
	)
	if err != nil {
		return nil, fmt.Errorf("temporal: assemble server: %w", err)
	}
	if err := server.Start(); err != nil {
		return nil, fmt.Errorf("temporal: start on %s with data in %s: %w", cfg.Address(), store.DatabaseName, err)
	}
	node := &Node{server: server, config: cfg}
	if err := node.awaitServing(ctx); err != nil {
		return nil, errors.Join(err, server.Stop())
	}
	return node, nil
}

// prepare makes the data folder and brings the database's schema to this server's.
func prepare(cfg Config, store *config.SQL) error {
	if cfg.Dir != "" {
		if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
			return fmt.Errorf("temporal: make data folder %s: %w", cfg.Dir, err)
		}
	}
	if cfg.Dir == "" && cfg.File == "" {
		return nil // the SQLite plugin itself sets up a database in memory
	}
	path, err := filepath.Abs(store.DatabaseName)
	if err != nil {
		return fmt.Errorf("temporal: database %s: %w", store.DatabaseName, err)
	}
	return ensureSchema(path)
}

// awaitServing asks until workflows can be started in each namespace.
func (n *Node) awaitServing(ctx context.Context) error {
	for _, namespace := range n.config.Namespaces {
		c, err := n.dial(namespace.Name)
		if err != nil {
			return err
		}
		defer c.Close()
		if err := awaitShard(ctx, c); err != nil {
			return fmt.Errorf("temporal: wait until namespace %s serves: %w", namespace.Name, err)
		}
		if err := namespace.reconcile(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

// awaitShard describes a workflow that cannot exist: only the owner of the history
// shard can say that it is not there.
func awaitShard(ctx context.Context, c client.Client) error {
	ticker := time.NewTicker(readinessProbe)
	defer ticker.Stop()
	for {
		probe, cancel := context.WithTimeout(ctx, probeTimeout)
		_, err := c.DescribeWorkflowExecution(probe, "burrow-readiness-probe", "")
		cancel()
		var absent *serviceerror.NotFound
		if err == nil || errors.As(err, &absent) {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), err)
		case <-ticker.C:
		}
	}
}

// dial opens a lazy client with this process's own certificate.
func (n *Node) dial(namespace string) (client.Client, error) {
	options := client.Options{
		HostPort:  n.config.Address(),
		Namespace: namespace,
		Logger:    sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler)),
	}
	if files := n.config.TLS; files != nil {
		credentials, err := files.clientConfig()
		if err != nil {
			return nil, err
		}
		options.ConnectionOptions.TLS = credentials
	}
	c, err := client.NewLazyClient(options)
	if err != nil {
		return nil, fmt.Errorf("temporal: make client for %s: %w", n.config.Address(), err)
	}
	return c, nil
}

// clientConfig reads the files for this process's own client.
func (t *TLS) clientConfig() (*tls.Config, error) {
	authority, err := os.ReadFile(t.CA)
	if err != nil {
		return nil, fmt.Errorf("temporal: read certificate authority: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(authority) {
		return nil, fmt.Errorf("temporal: no certificate in %s", t.CA)
	}
	pair, err := tls.LoadX509KeyPair(t.ClientCert, t.ClientKey)
	if err != nil {
		return nil, fmt.Errorf("temporal: read client certificate: %w", err)
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool, Certificates: []tls.Certificate{pair}, ServerName: t.ServerName}, nil
}

// Stop ends the services, frontend first, or gives up when ctx ends. What was
// acknowledged is on disk either way.
func (n *Node) Stop(ctx context.Context) error {
	stopped := make(chan error, 1)
	go func() { stopped <- n.server.Stop() }()
	select {
	case err := <-stopped:
		if err != nil {
			return fmt.Errorf("temporal: stop %s: %w", n.config.Address(), err)
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("temporal: stop %s: %w", n.config.Address(), context.Cause(ctx))
	}
}
