package etcdstate

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"burrow.dev/burrow/internal/config"
	"burrow.dev/burrow/internal/errs"
)

const (
	// requestTimeout bounds one request: etcd answers in milliseconds or is electing a
	// leader, which takes about a second; the caller's retry does the rest.
	requestTimeout = 5 * time.Second
	// requestAttempts is how often the client itself tries a read, each for requestTimeout:
	// enough to reach another member. Its default of 100 would hold a caller for minutes.
	requestAttempts = 2
	// keepaliveTime finds a connection that died without a reset, and a member that hangs,
	// so that watches resume. It is the smallest that gRPC takes; less is made this silently.
	keepaliveTime    = 10 * time.Second
	keepaliveTimeout = 3 * time.Second
	// DefaultLockTTL is how long a lock outlives a holder that died.
	DefaultLockTTL = 10 * time.Second
	// DefaultAliveTTL is how long a host counts as alive after its worker died.
	DefaultAliveTTL = 10 * time.Second
)

// Options of a Store. The zero value is good.
type Options struct {
	// Logger gets what no caller can be told, as a watch that has to start again; default discards.
	Logger *slog.Logger
	// DialOptions are added to those of the connection: interceptors.
	DialOptions []grpc.DialOption
	// LockTTL and AliveTTL default to DefaultLockTTL and DefaultAliveTTL; whole seconds.
	LockTTL, AliveTTL time.Duration
}

// Store is a connection to etcd and the keys below one prefix. Safe for concurrent use.
type Store struct {
	client *clientv3.Client
	prefix string
	log    *slog.Logger
	locks  *locks
	alive  time.Duration
	tls    *tls.Config // nil without TLS
}

// Open makes a Store. It does not wait for etcd: while that is away, calls fail with
// errs.ErrUnavailable. An unreadable TLS file or no endpoint is an error here.
func Open(cfg config.Etcd, opts Options) (*Store, error) {
	if len(cfg.Endpoints) == 0 {
		return nil, errs.NewPermanent("etcd", "connect", errors.New("no endpoints configured"), "name them in worker.json")
	}
	tlsConfig, err := cfg.TLS.Client()
	if err != nil {
		return nil, errs.NewPermanent("etcd", "read TLS files", err, "check the tls section of worker.json")
	}
	client, err := clientv3.New(clientv3.Config{
		Endpoints:            cfg.Endpoints,
		TLS:                  tlsConfig,
		DialTimeout:          requestTimeout,
		DialKeepAliveTime:    keepaliveTime,
		DialKeepAliveTimeout: keepaliveTimeout,
		MaxUnaryRetries:      requestAttempts,
		DialOptions:          append([]grpc.DialOption{grpc.WithChainUnaryInterceptor(boundRequest)}, opts.DialOptions...),
		// The client logs each failed attempt; those are errors that callers get anyway.
		Logger: zap.NewNop(),
	})
	if err != nil {
		return nil, errs.NewPermanent("etcd", "connect", err, "check the etcd section of worker.json")
	}
	s := newStore(client, cfg.Prefix, opts)
	s.tls = tlsConfig
	return s, nil
}

func newStore(client *clientv3.Client, prefix string, opts Options) *Store {
	if prefix == "" {
		prefix = config.DefaultPrefix
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if opts.LockTTL == 0 {
		opts.LockTTL = DefaultLockTTL
	}
	if opts.AliveTTL == 0 {
		opts.AliveTTL = DefaultAliveTTL
	}
	return &Store{
		client: client,
		prefix: strings.TrimSuffix(prefix, "/") + "/",
		log:    opts.Logger,
		locks:  newLocks(client, opts.LockTTL),
		alive:  opts.AliveTTL,
	}
}

// Close ends the connection, the watches and the lock session with it.
func (s *Store) Close() error {
	s.locks.close()
	return s.client.Close()
}

// Client gives the etcd client to the subpackages.
func (s *Store) Client() *clientv3.Client { return s.client }

// Key gives the full key of parts: Key("ipam", uid, "cursor").
func (s *Store) Key(parts ...string) string { return s.prefix + strings.Join(parts, "/") }

// boundRequest gives every request a deadline of its own, so that a member that hangs
// does not hold its caller for as long as the whole activity may take.
func boundRequest(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	return invoke(ctx, method, req, reply, cc, opts...)
}
