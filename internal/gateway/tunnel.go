package gateway

import (
	"context"
	"errors"
	"io"
	"sync/atomic"

	"google.golang.org/grpc"

	"burrow.dev/burrow/internal/gateway/gatewaypb"
)

// tunnel is the server's side of Dial, Console and Agent.
type tunnel = grpc.BidiStreamingServer[gatewaypb.TunnelRequest, gatewaypb.TunnelResponse]

// halfCloser is a connection whose writing side can end alone, as TCP's can.
type halfCloser interface{ CloseWrite() error }

// carry joins a stream and the far end until both directions have ended or one broke,
// and closes the far end. The end of one direction is passed on: the client's as
// CloseWrite (or Close, where that is all there is), the far end's as eof.
func carry(stream tunnel, far io.ReadWriteCloser, remote string) error {
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	// Closing wakes a Read that waits, when the client has gone or sending to the far end failed.
	release := context.AfterFunc(ctx, func() { _ = far.Close() })
	defer func() {
		if release() {
			_ = far.Close()
		}
	}()
	if err := stream.Send(&gatewaypb.TunnelResponse{Opened: true, Remote: remote}); err != nil {
		return err
	}
	// Recv ends with the stream, which ends when this function returns at the latest.
	sent := make(chan error, 1)
	var over atomic.Bool // the client has ended, and the far end has no half to close
	go func() {
		err := toFar(stream, far, &over)
		if err != nil {
			cancel()
		}
		sent <- err
	}()
	err := fromFar(stream, far)
	switch {
	case over.Load():
		return nil
	case err != nil && stream.Context().Err() == nil && ctx.Err() != nil:
		return <-sent // the far end was closed since sending to it failed: that is the cause
	case err != nil && stream.Context().Err() != nil:
		return stream.Context().Err() // the client has gone, and the far end was closed for it
	case err != nil:
		return err
	}
	select {
	case err := <-sent:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// toFar passes the client's bytes on. nil after the client's orderly end.
func toFar(stream tunnel, far io.ReadWriteCloser, over *atomic.Bool) error {
	for {
		req, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			if half, ok := far.(halfCloser); ok {
				return half.CloseWrite()
			}
			over.Store(true)
			return far.Close()
		}
		if err != nil {
			return err
		}
		if _, err := far.Write(req.GetData()); err != nil {
			return err
		}
	}
}

// fromFar passes the far end's bytes back, then its end. nil after an orderly end.
func fromFar(stream tunnel, far io.Reader) error {
	buf := make([]byte, chunkSize)
	for {
		n, err := far.Read(buf)
		if n > 0 {
			if err := stream.Send(&gatewaypb.TunnelResponse{Data: buf[:n]}); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return stream.Send(&gatewaypb.TunnelResponse{Eof: true})
		}
		if err != nil {
			return err
		}
	}
}
