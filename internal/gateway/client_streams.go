package gateway

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"

	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/gateway/gatewaypb"
)

// HasBundle reports whether the gateway has a bundle, whole.
func (c *Client) HasBundle(ctx context.Context, digest string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	resp, err := c.rpc.HasBundle(ctx, &gatewaypb.HasBundleRequest{Digest: digest})
	return resp.GetStored(), c.failed(err, "ask for a bundle")
}

// UploadBundle sends size bytes of r to be stored under digest. A digest that does not
// match, and a bundle over MaxBundle, are errs.ErrInvalid. Sending one twice is success.
func (c *Client) UploadBundle(ctx context.Context, digest string, size int64, r io.Reader) error {
	const action = "upload a bundle"
	if err := checkBundleSize(size); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := c.rpc.UploadBundle(ctx)
	if err != nil {
		return c.failed(err, action)
	}
	sendErr := stream.Send(&gatewaypb.UploadBundleRequest{Digest: digest, Size: size})
	buf := make([]byte, chunkSize)
	for sendErr == nil {
		n, err := io.ReadFull(r, buf)
		if n > 0 {
			sendErr = stream.Send(&gatewaypb.UploadBundleRequest{Data: buf[:n]})
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			break
		}
		if err != nil {
			return errs.NewPermanent("bundle", "read", err, "")
		}
	}
	// When sending failed, the answer says why.
	_, err = stream.CloseAndRecv()
	return c.failed(err, action)
}

// DownloadBundle writes the bundle with a digest to w, and is content only when the bytes
// were those of the digest. One that is not stored is errs.ErrNotFound.
func (c *Client) DownloadBundle(ctx context.Context, digest string, w io.Writer) error {
	const action = "download a bundle"
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := c.rpc.DownloadBundle(ctx, &gatewaypb.DownloadBundleRequest{Digest: digest})
	if err != nil {
		return c.failed(err, action)
	}
	sum, size := sha256.New(), 0
	err = receive(stream, c.failingUnless(ctx, action), func(chunk *gatewaypb.Chunk) error {
		if size += len(chunk.GetData()); size > MaxBundle {
			return errs.NewPermanent("bundle "+digest, "download", errs.Reason("%w: it has more than %d MiB", errs.ErrInvalid, MaxBundle>>20), "apply again")
		}
		_, err := io.MultiWriter(sum, w).Write(chunk.GetData())
		return err
	})
	if err == nil && "sha256:"+hex.EncodeToString(sum.Sum(nil)) != digest {
		err = errs.NewPermanent("bundle "+digest, "download", errs.Reason("%w: the store's copy is damaged", errs.ErrInvalid), "apply again, which uploads it")
	}
	return err
}

// ListRuns gives the ids of a server's playbook runs that have a log, latest first.
func (c *Client) ListRuns(ctx context.Context, server string) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	resp, err := c.rpc.ListRuns(ctx, &gatewaypb.ListRunsRequest{Server: server})
	return resp.GetRuns(), c.failed(err, "list runs")
}

// Logs writes the log of a server's run to w. Run "" is the latest, "N" the N-th last; follow goes on until
// the run has ended, or ctx (whose error it then gives).
func (c *Client) Logs(ctx context.Context, server, run string, follow bool, w io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := c.rpc.Logs(ctx, &gatewaypb.LogsRequest{Server: server, Run: run, Follow: follow})
	if err != nil {
		return c.failed(err, "read a log")
	}
	return receive(stream, c.failingUnless(ctx, "read a log"), func(chunk *gatewaypb.Chunk) error {
		_, err := w.Write(chunk.GetData())
		return err
	})
}
