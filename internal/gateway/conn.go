package gateway

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"google.golang.org/grpc"

	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/gateway/gatewaypb"
)

// DialServer opens a TCP connection to a port of a server, from inside its network. The
// connection has CloseWrite. ctx bounds only the opening.
func (c *Client) DialServer(ctx context.Context, server string, port int) (net.Conn, error) {
	return c.open(ctx, c.rpc.Dial, &gatewaypb.TunnelRequest{Server: server, Port: uint32(port)}, "connect to server/"+server)
}

// Console joins the serial console of a server. ctx bounds only the opening.
func (c *Client) Console(ctx context.Context, server string) (net.Conn, error) {
	return c.open(ctx, c.rpc.Console, &gatewaypb.TunnelRequest{Server: server}, "open the console of server/"+server)
}

// AgentConn opens a connection that speaks the ssh-agent protocol (for agent.NewClient),
// with the server's management key in it. ctx bounds only the opening.
func (c *Client) AgentConn(ctx context.Context, server string) (net.Conn, error) {
	return c.open(ctx, c.rpc.Agent, &gatewaypb.TunnelRequest{Server: server}, "open the agent of server/"+server)
}

// clientTunnel is the client's side of Dial, Console and Agent.
type clientTunnel = grpc.BidiStreamingClient[gatewaypb.TunnelRequest, gatewaypb.TunnelResponse]

func (c *Client) open(ctx context.Context, call func(context.Context, ...grpc.CallOption) (clientTunnel, error),
	head *gatewaypb.TunnelRequest, action string,
) (net.Conn, error) {
	// The stream lives as long as the connection, not as the opening.
	streaming, cancel := context.WithCancel(context.WithoutCancel(ctx))
	opening := context.AfterFunc(ctx, cancel)
	fail := func(err error) (net.Conn, error) {
		cancel()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, c.failed(err, action)
	}
	stream, err := call(streaming)
	if err != nil {
		return fail(err)
	}
	if err := stream.Send(head); err != nil && !errors.Is(err, io.EOF) {
		return fail(err)
	}
	first, err := stream.Recv()
	if err != nil {
		return fail(err)
	}
	if !first.GetOpened() {
		return fail(errs.NewPermanent(c.object, action, errs.ErrInvalid, "use the same version of burrow as the worker"))
	}
	if !opening() {
		return fail(ctx.Err())
	}
	conn := &tunnelConn{
		stream: stream, cancel: cancel, client: c, action: action, remote: first.GetRemote(),
		chunks: make(chan []byte), ended: make(chan struct{}), deadline: newDeadline(),
	}
	go conn.receive(streaming)
	return conn, nil
}

// tunnelConn is a net.Conn over a stream.
type tunnelConn struct {
	stream clientTunnel
	cancel context.CancelFunc
	client *Client
	action string
	remote string

	chunks   chan []byte   // received and not yet read
	ended    chan struct{} // closed after endErr is set
	endErr   error
	deadline *deadline // of Read

	reading sync.Mutex
	rest    []byte // of the chunk that Read is at

	writing       sync.Mutex
	closedWriting bool
	writeBy       time.Time
}

// receive hands chunks to Read until the stream ends; nothing is read ahead of it but
// one chunk and what flow control allows.
func (t *tunnelConn) receive(ctx context.Context) {
	defer close(t.ended)
	for {
		resp, err := t.stream.Recv()
		switch {
		case ctx.Err() != nil:
			t.endErr = net.ErrClosed
			return
		case errors.Is(err, io.EOF), err == nil && resp.GetEof():
			t.endErr = io.EOF
			return
		case err != nil:
			t.endErr = t.client.failed(err, t.action)
			return
		}
		if len(resp.GetData()) == 0 {
			continue
		}
		select {
		case t.chunks <- resp.GetData():
		case <-ctx.Done():
			t.endErr = net.ErrClosed
			return
		}
	}
}

// Read implements net.Conn.
func (t *tunnelConn) Read(p []byte) (int, error) {
	t.reading.Lock()
	defer t.reading.Unlock()
	if len(t.rest) == 0 {
		passed := t.deadline.passed()
		select {
		case <-passed:
			return 0, os.ErrDeadlineExceeded
		default:
		}
		select {
		case t.rest = <-t.chunks:
		case <-t.ended:
			return 0, t.endErr
		case <-passed:
			return 0, os.ErrDeadlineExceeded
		}
	}
	n := copy(p, t.rest)
	t.rest = t.rest[n:]
	return n, nil
}

// Write implements net.Conn. It waits while the far end takes nothing; a write deadline
// that passes meanwhile ends the whole connection.
func (t *tunnelConn) Write(p []byte) (int, error) {
	t.writing.Lock()
	defer t.writing.Unlock()
	if t.closedWriting {
		return 0, net.ErrClosed
	}
	if !t.writeBy.IsZero() {
		left := time.Until(t.writeBy)
		if left <= 0 {
			return 0, os.ErrDeadlineExceeded
		}
		late := time.AfterFunc(left, t.cancel)
		defer late.Stop()
	}
	written := 0
	for written < len(p) {
		end := min(written+chunkSize, len(p))
		// A message is marshalled before Send returns, so p may be used again.
		if err := t.stream.Send(&gatewaypb.TunnelRequest{Data: p[written:end]}); err != nil {
			return written, t.writeError(err)
		}
		written = end
	}
	return written, nil
}

// writeError: a stream tells why it ended only to its reader.
func (t *tunnelConn) writeError(err error) error {
	if !errors.Is(err, io.EOF) {
		return t.client.failed(err, t.action)
	}
	return io.ErrClosedPipe
}

// CloseWrite tells the far end that nothing more comes; reading goes on.
func (t *tunnelConn) CloseWrite() error {
	t.writing.Lock()
	defer t.writing.Unlock()
	if t.closedWriting {
		return nil
	}
	t.closedWriting = true
	return t.stream.CloseSend()
}

// Close ends the connection. What was written and has not left yet may be lost: to be
// sure of it, CloseWrite and read to the end first.
func (t *tunnelConn) Close() error {
	t.cancel()
	<-t.ended
	return nil
}

// LocalAddr implements net.Conn.
func (t *tunnelConn) LocalAddr() net.Addr { return tunnelAddr("burrow") }

// RemoteAddr gives what the gateway connected to: "172.16.90.2:22".
func (t *tunnelConn) RemoteAddr() net.Addr { return tunnelAddr(t.remote) }

// SetDeadline implements net.Conn.
func (t *tunnelConn) SetDeadline(at time.Time) error {
	return errors.Join(t.SetReadDeadline(at), t.SetWriteDeadline(at))
}

// SetReadDeadline implements net.Conn; it also ends a Read that waits.
func (t *tunnelConn) SetReadDeadline(at time.Time) error {
	t.deadline.set(at)
	return nil
}

// SetWriteDeadline implements net.Conn; it holds for the next Write.
func (t *tunnelConn) SetWriteDeadline(at time.Time) error {
	t.writing.Lock()
	defer t.writing.Unlock()
	t.writeBy = at
	return nil
}

type tunnelAddr string

// Network implements net.Addr.
func (tunnelAddr) Network() string { return "burrow" }

// String implements net.Addr.
func (a tunnelAddr) String() string { return string(a) }
