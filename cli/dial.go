package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"

	ucli "github.com/urfave/cli/v2"

	"burrow.dev/burrow/internal/errs"
)

// dialSocketTimeout bounds the connection to a run's socket, which is on this machine.
const dialSocketTimeout = 5 * time.Second

// dialCommand is the ProxyCommand of ssh: it joins stdin and stdout with a server's port.
func dialCommand() *ucli.Command {
	return &ucli.Command{
		Name: "dial", Category: categoryServers, Hidden: true,
		Usage: "join stdin and stdout with a server's port", ArgsUsage: "NAME PORT | --socket PATH NAME",
		Flags: []ucli.Flag{
			&ucli.StringFlag{Name: "socket", Usage: "the unix socket at `PATH` of a playbook run, instead of the gateway"},
			&ucli.StringFlag{Name: "agent", Usage: "serve the server's key on the socket `PATH` meanwhile"},
		},
		Action: func(c *ucli.Context) error {
			conn, closer, err := dialled(c)
			if err != nil {
				return err
			}
			defer func() { _ = closer.Close() }()
			defer func() { _ = conn.Close() }()
			return join(c.Context, conn, c.App.Reader, c.App.Writer)
		},
	}
}

func dialled(c *ucli.Context) (net.Conn, io.Closer, error) {
	if socket := c.String("socket"); socket != "" {
		if c.NArg() != 1 {
			return nil, nil, usageErrorf(c, "name the server to reach by that socket")
		}
		conn, err := dialSocket(c.Context, socket, c.Args().First())
		return conn, io.NopCloser(nil), err
	}
	if c.NArg() != 2 {
		return nil, nil, usageErrorf(c, "name a server and a port")
	}
	port, err := strconv.Atoi(c.Args().Get(1))
	if err != nil || port < 1 || port > 65535 {
		return nil, nil, usageErrorf(c, "%q is no TCP port", c.Args().Get(1))
	}
	gw, err := openGateway(c)
	if err != nil {
		return nil, nil, err
	}
	conn, err := gw.DialServer(c.Context, c.Args().First(), port)
	if err != nil {
		return nil, nil, errors.Join(err, gw.Close())
	}
	if socket := c.String("agent"); socket != "" {
		end := lendAgent(c, gw, c.Args().First(), socket)
		return conn, closeFunc(func() error { end(); return gw.Close() }), nil
	}
	return conn, gw, nil
}

// closeFunc is an io.Closer.
type closeFunc func() error

// Close implements io.Closer.
func (f closeFunc) Close() error { return f() }

// dialSocket connects to the socket of a playbook run and names the server on its first line.
func dialSocket(ctx context.Context, path, server string) (net.Conn, error) {
	d := net.Dialer{Timeout: dialSocketTimeout}
	conn, err := d.DialContext(ctx, "unix", path)
	if err == nil {
		_, err = fmt.Fprintf(conn, "%s\n", server)
	}
	if err != nil {
		return nil, errs.NewTransient("server/"+server, "connect by "+path, err)
	}
	return conn, nil
}

// join copies both ways until the far end has ended. The end of in is passed on, and the
// far end's answer to it still arrives.
func join(ctx context.Context, conn net.Conn, in io.Reader, out io.Writer) error {
	release := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer release()
	// This goroutine may wait for its input when the far end has gone; the process ends then.
	go func() {
		_, err := io.Copy(conn, in)
		if half, ok := conn.(interface{ CloseWrite() error }); ok && err == nil {
			_ = half.CloseWrite()
			return
		}
		if err != nil {
			_ = conn.Close()
		}
	}()
	_, err := io.Copy(out, conn)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}
