package gateway

import (
	"context"
	"errors"
	"io"

	"google.golang.org/grpc"

	"burrow.dev/burrow/internal/blob"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/gateway/gatewaypb"
)

// HasBundle implements the service. A bundle that was damaged on disk counts as absent,
// so that it is sent again.
func (s *Server) HasBundle(ctx context.Context, req *gatewaypb.HasBundleRequest) (*gatewaypb.HasBundleResponse, error) {
	key, err := blob.BundleKey(req.GetDigest())
	if err != nil {
		return nil, err
	}
	stored, err := s.deps.Blobs.Intact(ctx, key)
	return &gatewaypb.HasBundleResponse{Stored: stored}, err
}

// UploadBundle implements the service.
func (s *Server) UploadBundle(stream grpc.ClientStreamingServer[gatewaypb.UploadBundleRequest, gatewaypb.UploadBundleResponse]) error {
	header, err := stream.Recv()
	if err != nil {
		return err
	}
	key, err := blob.BundleKey(header.GetDigest())
	if err != nil {
		return err
	}
	if err := checkBundleSize(header.GetSize()); err != nil {
		return err
	}
	body := &uploaded{stream: stream, left: header.GetSize()}
	if err := s.deps.Blobs.Put(stream.Context(), key, body); err != nil {
		return err
	}
	return stream.SendAndClose(&gatewaypb.UploadBundleResponse{})
}

// DownloadBundle implements the service.
func (s *Server) DownloadBundle(req *gatewaypb.DownloadBundleRequest, stream grpc.ServerStreamingServer[gatewaypb.Chunk]) error {
	key, err := blob.BundleKey(req.GetDigest())
	if err != nil {
		return err
	}
	body, err := s.deps.Blobs.Get(stream.Context(), key)
	if err != nil {
		return err
	}
	defer body.Close()
	buf := make([]byte, chunkSize)
	for {
		n, err := io.ReadFull(body, buf)
		if n > 0 {
			if err := stream.Send(&gatewaypb.Chunk{Data: buf[:n]}); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func checkBundleSize(size int64) error {
	if size <= 0 || size > MaxBundle {
		return errs.NewPermanent("bundle", "upload", errs.Reason("%w: it has %d bytes, and at most %d MiB are taken", errs.ErrInvalid, size, MaxBundle>>20),
			"move large files out of the playbook's folder")
	}
	return nil
}

// uploaded reads the bytes of an upload, and exactly as many as the header said.
type uploaded struct {
	stream grpc.ClientStreamingServer[gatewaypb.UploadBundleRequest, gatewaypb.UploadBundleResponse]
	left   int64
	chunk  []byte
}

func (u *uploaded) Read(p []byte) (int, error) {
	for len(u.chunk) == 0 {
		req, err := u.stream.Recv()
		switch {
		case errors.Is(err, io.EOF) && u.left > 0:
			return 0, errs.NewPermanent("bundle", "upload", errs.Reason("%w: it ended %d bytes too early", errs.ErrInvalid, u.left), "send it again")
		case err != nil:
			return 0, err
		case int64(len(req.GetData())) > u.left:
			return 0, errs.NewPermanent("bundle", "upload", errs.Reason("%w: more bytes came than were announced", errs.ErrInvalid), "send it again")
		}
		u.chunk = req.GetData()
		u.left -= int64(len(u.chunk))
	}
	n := copy(p, u.chunk)
	u.chunk = u.chunk[n:]
	return n, nil
}
