package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	ucli "github.com/urfave/cli/v2"
	"golang.org/x/term"
)

// consoleEscape leaves the console: Ctrl-], as telnet and virsh have it.
const consoleEscape = 0x1d

// leaveTimeout is how long leaving waits for what was typed last to arrive.
const leaveTimeout = time.Second

// consoleCommand joins the serial console of a server.
func consoleCommand() *ucli.Command {
	return &ucli.Command{
		Name: "console", Category: categoryServers, Usage: "join a server's serial console; Ctrl-] leaves it", ArgsUsage: "[server] NAME",
		Action: func(c *ucli.Context) error {
			name, _, err := serverArg(c)
			if err != nil {
				return err
			}
			gw, err := openGateway(c)
			if err != nil {
				return err
			}
			defer func() { _ = gw.Close() }()
			conn, err := gw.Console(c.Context, name)
			if err != nil {
				return err
			}
			defer func() { _ = conn.Close() }()
			fmt.Fprintf(c.App.ErrWriter, "joined the console of server/%s; leave it with Ctrl-]\n", name)
			restore, err := rawTerminal(c.App.Reader)
			if err != nil {
				return err
			}
			defer restore()
			return converse(c.Context, conn, c.App.Reader, c.App.Writer)
		},
	}
}

// rawTerminal hands every key to the console; restore gives the terminal back. Anything
// but a terminal is left alone.
func rawTerminal(in io.Reader) (restore func(), err error) {
	if !isTerminal(in) {
		return func() {}, nil
	}
	fd := int(in.(*os.File).Fd())
	old, err := term.MakeRaw(fd)
	if err != nil {
		return nil, fmt.Errorf("put the terminal into raw mode: %w", err)
	}
	return func() { _ = term.Restore(fd, old) }, nil
}

// converse copies both ways until the escape key, the end of either side, or ctx.
func converse(ctx context.Context, conn net.Conn, in io.Reader, out io.Writer) error {
	release := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer release()
	// This goroutine may wait for a key when the console has gone; the process ends then.
	go func() {
		_, _ = io.Copy(conn, &untilEscape{r: in})
		_ = conn.(interface{ CloseWrite() error }).CloseWrite() // what was typed still arrives
		time.AfterFunc(leaveTimeout, func() { _ = conn.Close() })
	}()
	_, err := io.Copy(out, conn)
	if errors.Is(err, net.ErrClosed) {
		return nil // we left
	}
	return err
}

// untilEscape reads up to the escape key.
type untilEscape struct {
	r    io.Reader
	over bool
}

// Read implements io.Reader.
func (u *untilEscape) Read(p []byte) (int, error) {
	if u.over {
		return 0, io.EOF
	}
	n, err := u.r.Read(p)
	if i := bytes.IndexByte(p[:n], consoleEscape); i >= 0 {
		u.over = true
		return i, io.EOF
	}
	return n, err
}
