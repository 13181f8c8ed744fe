package gateway

import (
	"context"
	"errors"
	"math"
	"net"
	"net/netip"
	"strconv"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
)

// Dial implements the service. Only the server's own addresses can be reached.
func (s *Server) Dial(stream tunnel) error {
	if s.deps.Dialer == nil {
		return absent("networks")
	}
	head, err := stream.Recv()
	if err != nil {
		return err
	}
	if head.GetPort() == 0 || head.GetPort() > math.MaxUint16 {
		return status.Errorf(codes.InvalidArgument, "port %d: a TCP port is 1 to 65535", head.GetPort())
	}
	rec, err := s.server(stream.Context(), head.GetServer())
	if err != nil {
		return err
	}
	conn, remote, err := s.dialAny(stream.Context(), rec, int(head.GetPort()))
	if err != nil {
		return err
	}
	return carry(stream, conn, remote)
}

// server gives the record of a server that is on this host.
func (s *Server) server(ctx context.Context, name string) (manifest.Record, error) {
	rec, err := record(ctx, s.deps.Records, manifest.KindServer, name)
	if err != nil {
		return rec, err
	}
	if host := rec.Status.Host; host != "" && s.deps.Info.Host != "" && host != s.deps.Info.Host {
		return rec, errs.NewPermanent("server/"+name, "reach", errs.Reason("it is on host %s, and this gateway is on %s", host, s.deps.Info.Host),
			"use the client configuration of "+host)
	}
	return rec, nil
}

// endpoint is one address of a server with the network it is reached through.
type endpoint struct{ network, address string }

func endpoints(rec manifest.Record, port int) []endpoint {
	var all []endpoint
	for _, p := range rec.Status.Ports {
		for _, text := range p.Addresses {
			prefix, err := netip.ParsePrefix(text)
			if err != nil {
				continue // a record of ours always parses; a strange one is as good as none
			}
			all = append(all, endpoint{p.Network, net.JoinHostPort(prefix.Addr().String(), strconv.Itoa(port))})
		}
	}
	return all
}

// dialAny tries a server's addresses in order, each beside the earlier ones as soon as
// they fail or take long; the first that answers wins.
func (s *Server) dialAny(ctx context.Context, rec manifest.Record, port int) (net.Conn, string, error) {
	object := "server/" + rec.Metadata.Name
	all := endpoints(rec, port)
	if len(all) == 0 {
		return nil, "", errs.NewTransient(object, "connect to port "+strconv.Itoa(port),
			errs.Reason("%w: it has no address (it is %s); follow it: burrow watch %s", errs.ErrUnavailable, rec.Status.Phase, object))
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()

	type answer struct {
		conn net.Conn
		at   endpoint
		err  error
	}
	answers := make(chan answer)
	started, open := 0, 0
	start := func() {
		at := all[started]
		started, open = started+1, open+1
		go func() {
			conn, err := s.deps.Dialer.DialNetwork(ctx, at.network, at.address)
			answers <- answer{conn, at, err}
		}()
	}
	stagger := time.NewTicker(dialStagger)
	defer stagger.Stop()
	var won *answer
	var failures error
	for start(); open > 0; {
		select {
		case a := <-answers:
			open--
			switch {
			case a.err != nil && won == nil:
				failures = errors.Join(failures, a.err)
				if started < len(all) && ctx.Err() == nil {
					start()
				}
			case a.err == nil && won == nil:
				won = &a
				cancel() // the others
			case a.err == nil:
				_ = a.conn.Close()
			}
		case <-stagger.C:
			if started < len(all) && won == nil {
				start()
			}
		}
	}
	if won != nil {
		return won.conn, won.at.address, nil
	}
	return nil, "", errs.NewTransient(object, "connect to port "+strconv.Itoa(port), errs.Reason("%w: %w", errs.ErrUnavailable, failures))
}
