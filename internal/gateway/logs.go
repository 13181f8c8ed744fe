package gateway

import (
	"context"
	"errors"
	"io"

	"google.golang.org/grpc"

	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/gateway/gatewaypb"
	"burrow.dev/burrow/manifest"
)

// Logs implements the service.
func (s *Server) Logs(req *gatewaypb.LogsRequest, stream grpc.ServerStreamingServer[gatewaypb.Chunk]) error {
	if s.deps.Logs == nil {
		return absent("run logs")
	}
	ctx := stream.Context()
	rec, err := record(ctx, s.deps.Records, manifest.KindServer, req.GetServer())
	if err != nil {
		return err
	}
	log, err := s.deps.Logs.Open(ctx, rec, req.GetRun(), req.GetFollow())
	if errors.Is(err, errs.ErrNotFound) {
		return noLog(rec, req.GetRun())
	}
	if err != nil {
		return err
	}
	// A reader that waits for more must not outlive the client.
	release := context.AfterFunc(ctx, func() { _ = log.Close() })
	defer func() {
		if release() {
			_ = log.Close()
		}
	}()
	buf := make([]byte, chunkSize)
	for {
		n, err := log.Read(buf)
		if n > 0 {
			if err := stream.Send(&gatewaypb.Chunk{Data: buf[:n]}); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			return err
		}
	}
}

// noLog says that a server has no such run, or none at all.
func noLog(rec manifest.Record, run string) error {
	ref := manifest.Ref(manifest.KindServer, rec.Metadata.Name)
	cause, next := errs.Reason("%w: no playbook has run on it yet", errs.ErrNotFound), "`burrow describe "+ref+"` shows how it stands"
	if run != "" {
		cause, next = errs.Reason("%w: it has no run %q", errs.ErrNotFound, run), "leave --run out for its latest run"
	}
	return errs.NewPermanent(ref, "read its log", cause, next)
}
