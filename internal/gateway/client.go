package gateway

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"strings"
	"sync"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	"burrow.dev/burrow/internal/config"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/gateway/gatewaypb"
)

// Client talks to one gateway. It is safe for concurrent use.
type Client struct {
	conn *grpc.ClientConn
	rpc  gatewaypb.GatewayClient
	info Info

	object string // "gateway at /run/burrow/gateway.sock"

	mu      sync.Mutex
	dialErr error // of the latest attempt to connect
}

// Dial connects and asks who is there, within 5 s. The error says why nobody answered
// and what to do.
func Dial(ctx context.Context, cfg config.Gateway) (*Client, error) {
	place, network, creds, err := target(cfg)
	if err != nil {
		return nil, err
	}
	authority := place
	if network == "unix" {
		authority = "burrow" // a path is none; the dialer below knows the place
	}
	c := &Client{object: "gateway at " + place}
	c.conn, err = grpc.NewClient("passthrough:///"+authority,
		grpc.WithTransportCredentials(creds),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			var d net.Dialer
			conn, err := d.DialContext(ctx, network, place)
			c.mu.Lock()
			c.dialErr = err
			c.mu.Unlock()
			return conn, err
		}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage)),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: keepaliveEvery, Timeout: keepaliveTimeout, PermitWithoutStream: true}),
	)
	if err != nil {
		return nil, errs.NewPermanent(c.object, "connect", err, "correct \"gateway\" in client.json")
	}
	c.rpc = gatewaypb.NewGatewayClient(c.conn)
	asking, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	resp, err := c.rpc.Info(asking, &gatewaypb.InfoRequest{})
	if err != nil {
		return nil, errors.Join(c.failed(err, "connect"), c.conn.Close())
	}
	c.info = Info{
		Version: resp.GetVersion(), Host: resp.GetHost(), Accelerator: resp.GetAccelerator(),
		AcceleratorReason: resp.GetAcceleratorReason(), Roles: resp.GetRoles(), Since: time.UnixMilli(resp.GetSinceUnixMs()),
		Waiting: resp.GetWaiting(),
	}
	return c, nil
}

func target(cfg config.Gateway) (place, network string, creds credentials.TransportCredentials, err error) {
	switch {
	case cfg.Socket != "":
		return cfg.Socket, "unix", insecure.NewCredentials(), nil
	case cfg.Address != "":
		tlsConfig, err := clientTLS(cfg)
		if err != nil {
			return "", "", nil, err
		}
		return cfg.Address, "tcp", credentials.NewTLS(tlsConfig), nil
	}
	return "", "", nil, errs.NewPermanent("gateway", "connect", errs.Reason("%w: the client configuration names none", errs.ErrInvalid),
		"set gateway.socket or gateway.address in client.json")
}

// Info says who answered when the client connected.
func (c *Client) Info() Info { return c.info }

// Close ends the connection and everything open on it.
func (c *Client) Close() error { return c.conn.Close() }

// failed makes a call's error one that says what to do next.
func (c *Client) failed(err error, action string) error {
	if err == nil {
		return nil
	}
	if status.Code(err) != codes.Unavailable {
		return fromStatus(err, c.object, action)
	}
	if st, ok := status.FromError(err); ok && len(st.Details()) > 0 {
		return fromStatus(err, c.object, action) // the gateway itself speaks of something unavailable
	}
	c.mu.Lock()
	cause := c.dialErr
	c.mu.Unlock()
	switch {
	case errors.Is(cause, fs.ErrPermission):
		return errs.NewPermanent(c.object, action, errs.Reason("%w: you may not open it", errs.ErrUnavailable),
			fmt.Sprintf("become a member of group %[1]s (sudo usermod -aG %[1]s $USER, then log in again), or use sudo", config.Group))
	case errors.Is(cause, fs.ErrNotExist), errors.Is(cause, syscall.ECONNREFUSED):
		return errs.New(errs.Transient, c.object, action, errs.Reason("%w: nobody listens there", errs.ErrUnavailable),
			"is burrow up? burrow status")
	case cause != nil:
		return errs.New(errs.Transient, c.object, action, errs.Reason("%w: %w", errs.ErrUnavailable, cause), "is burrow up? burrow status")
	}
	text := "the connection was lost"
	if _, refusal, ok := strings.Cut(status.Convert(err).Message(), "authentication handshake failed: "); ok {
		text = "the TLS handshake failed: " + strings.TrimSuffix(refusal, `"`)
	}
	return errs.New(errs.Transient, c.object, action, &remote{text, errs.ErrUnavailable}, "is burrow up? burrow status")
}
