package gateway

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"runtime/debug"
	"time"

	"golang.org/x/net/netutil"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	"burrow.dev/burrow/internal/config"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/gateway/gatewaypb"
)

// Server answers the gateway's calls. One Server serves once.
type Server struct {
	gatewaypb.UnimplementedGatewayServer

	deps Deps
	log  *slog.Logger
	// streams holds one token for each open stream.
	streams chan struct{}
	// listings holds one token for each listing of whole records.
	listings chan struct{}
}

// NewServer makes a server from its dependencies.
func NewServer(deps Deps) *Server {
	log := deps.Log
	if log == nil {
		log = slog.Default()
	}
	return &Server{
		deps: deps, log: log.With("part", "gateway"),
		streams: make(chan struct{}, maxStreams), listings: make(chan struct{}, maxListings),
	}
}

// Serve listens where cfg says (the socket, the address with mutual TLS, or both) and
// answers until ctx ends, which is no error. Open streams have a moment to finish.
// An address without TLS, and a socket that another worker serves, are Permanent errors.
func (s *Server) Serve(ctx context.Context, cfg config.Gateway) error {
	listeners, err := listen(ctx, cfg, s.log)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, l := range listeners {
		server := s.grpcServer(l.credentials)
		group.Go(func() error {
			if err := server.Serve(netutil.LimitListener(l.Listener, maxConnections)); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
				return errs.NewTransient("gateway at "+l.Addr().String(), "serve", err)
			}
			return nil
		})
		group.Go(func() error {
			<-ctx.Done()
			stop(server)
			return nil
		})
	}
	return group.Wait()
}

// stop lets calls finish, and cuts those that do not.
func stop(server *grpc.Server) {
	cut := time.AfterFunc(stopTimeout, server.Stop)
	defer cut.Stop()
	server.GracefulStop()
}

func (s *Server) grpcServer(tls credentials.TransportCredentials) *grpc.Server {
	server := grpc.NewServer(
		grpc.Creds(tls),
		grpc.MaxRecvMsgSize(maxMessage),
		grpc.MaxConcurrentStreams(maxStreamsPerConnection),
		grpc.ConnectionTimeout(connectTimeout),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: keepaliveEvery, Timeout: keepaliveTimeout}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: keepaliveMinimum, PermitWithoutStream: true}),
		grpc.ChainUnaryInterceptor(s.aroundCall),
		grpc.ChainStreamInterceptor(s.aroundStream),
	)
	gatewaypb.RegisterGatewayServer(server, s)
	gatewaypb.RegisterSecretsServer(server, secrets{deps: s.deps, log: s.log})
	gatewaypb.RegisterAddressesServer(server, addressPools{deps: s.deps})
	gatewaypb.RegisterHealthServer(server, health{deps: s.deps})
	return server
}

// aroundCall turns our errors into statuses, and a panic into one failed call.
func (s *Server) aroundCall(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (resp any, err error) {
	defer s.finish(info.FullMethod, &err)
	return next(ctx, req)
}

// aroundStream does the same, and bounds how many streams are open.
func (s *Server) aroundStream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) (err error) {
	select {
	case s.streams <- struct{}{}:
		defer func() { <-s.streams }()
	default:
		return status.Errorf(codes.ResourceExhausted, "this gateway has %d streams open, which is the most it takes: close some, or try again later", cap(s.streams))
	}
	defer s.finish(info.FullMethod, &err)
	return next(srv, stream)
}

func (s *Server) finish(method string, err *error) {
	if p := recover(); p != nil {
		s.log.Error("a call panicked", "method", method, "panic", p, "stack", string(debug.Stack()))
		*err = status.Error(codes.Internal, "the worker failed inside this call; its log has the details")
		return
	}
	*err = toStatus(*err)
	if code := status.Code(*err); code == codes.Unknown || code == codes.Internal {
		s.log.Warn("a call failed", "method", method, "error", *err)
	}
}

// Info implements the service.
func (s *Server) Info(context.Context, *gatewaypb.InfoRequest) (*gatewaypb.InfoResponse, error) {
	in := s.deps.Info
	if s.deps.Waiting != nil {
		in.Waiting = s.deps.Waiting()
	}
	return &gatewaypb.InfoResponse{
		Version: in.Version, Host: in.Host, Accelerator: in.Accelerator, AcceleratorReason: in.AcceleratorReason,
		SinceUnixMs: in.Since.UnixMilli(), Roles: in.Roles, Waiting: in.Waiting,
	}, nil
}

// listener is one place where the server listens, with what protects it.
type listener struct {
	net.Listener
	credentials credentials.TransportCredentials
}
