package gateway

import (
	"context"
	"errors"
	"io"
	"strconv"

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
	run, err := s.chosen(ctx, rec, req.GetRun())
	if err != nil {
		return err
	}
	log, err := s.deps.Logs.Open(ctx, rec, run, req.GetFollow())
	if errors.Is(err, errs.ErrNotFound) {
		return noLog(rec, run)
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

// ListRuns implements the service.
func (s *Server) ListRuns(ctx context.Context, req *gatewaypb.ListRunsRequest) (*gatewaypb.ListRunsResponse, error) {
	if s.deps.Logs == nil {
		return nil, absent("run logs")
	}
	rec, err := record(ctx, s.deps.Records, manifest.KindServer, req.GetServer())
	if err != nil {
		return nil, err
	}
	runs, err := s.deps.Logs.Runs(ctx, rec)
	if err != nil {
		return nil, err
	}
	return &gatewaypb.ListRunsResponse{Runs: runs[:min(maxRuns, len(runs))]}, nil
}

// maxRuns bounds a list: a server that is configured every minute has 500,000 a year.
const maxRuns = 1000

// chosen gives a run's id for the N-th last, 1 being the latest; anything else stays.
func (s *Server) chosen(ctx context.Context, rec manifest.Record, run string) (string, error) {
	back, err := strconv.Atoi(run)
	if err != nil || back < 1 {
		return run, nil
	}
	runs, err := s.deps.Logs.Runs(ctx, rec)
	switch {
	case err != nil:
		return "", err
	case len(runs) == 0:
		return "", noLog(rec, "")
	case back > len(runs):
		ref := manifest.Ref(manifest.KindServer, rec.Metadata.Name)
		return "", errs.NewPermanent(ref, "read its log", errs.Reason("%w: it has %d runs, not %d", errs.ErrNotFound, len(runs), back),
			"`burrow logs "+ref+" --list` lists them")
	}
	return runs[back-1], nil
}

// noLog says that a server has no such run, or none at all.
func noLog(rec manifest.Record, run string) error {
	ref := manifest.Ref(manifest.KindServer, rec.Metadata.Name)
	cause, next := errs.Reason("%w: no playbook has run on it yet", errs.ErrNotFound), "`burrow describe "+ref+"` shows how it stands"
	if run != "" {
		cause, next = errs.Reason("%w: it has no run %q", errs.ErrNotFound, run), "leave --run out for its latest run, or list them: `burrow logs "+ref+" --list`"
	}
	return errs.NewPermanent(ref, "read its log", cause, next)
}
