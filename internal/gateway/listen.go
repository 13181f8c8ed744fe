package gateway

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"burrow.dev/burrow/internal/config"
	"burrow.dev/burrow/internal/errs"
)

const (
	// socketMode lets the group in and nobody else.
	socketMode = 0o660
	// probeTimeout bounds the question whether a socket is served; a unix socket answers at once.
	probeTimeout = time.Second
)

func listen(ctx context.Context, cfg config.Gateway, log *slog.Logger) ([]listener, error) {
	var listeners []listener
	fail := func(err error) ([]listener, error) {
		for _, l := range listeners {
			err = errors.Join(err, l.Close())
		}
		return nil, err
	}
	if cfg.Socket != "" {
		l, err := listenSocket(ctx, cfg.Socket, log)
		if err != nil {
			return fail(err)
		}
		listeners = append(listeners, listener{l, insecure.NewCredentials()})
	}
	if cfg.Address != "" {
		tlsConfig, err := serverTLS(cfg)
		if err != nil {
			return fail(err)
		}
		var lc net.ListenConfig
		l, err := lc.Listen(ctx, "tcp", cfg.Address)
		if err != nil {
			return fail(errs.NewTransient("gateway at "+cfg.Address, "listen", err))
		}
		listeners = append(listeners, listener{l, credentials.NewTLS(tlsConfig)})
	}
	if len(listeners) == 0 {
		return nil, errs.NewPermanent("gateway", "listen", errs.Reason("%w: neither a socket nor an address is configured", errs.ErrInvalid),
			"set gateway.socket in worker.json")
	}
	return listeners, nil
}

// listenSocket makes the socket in a folder that is closed to others, gives it its mode
// and group there, and moves it to its place: nobody can connect in between, and what a
// killed worker left is replaced.
func listenSocket(ctx context.Context, path string, log *slog.Logger) (net.Listener, error) {
	object := "gateway at " + path
	if served(ctx, path) {
		return nil, errs.NewPermanent(object, "listen", errs.Reason("%w: another worker serves this socket", errs.ErrBusy), "stop that one first: burrow down")
	}
	closed, err := os.MkdirTemp(filepath.Dir(path), ".g")
	if err != nil {
		return nil, errs.NewOperator(object, "make the socket", err, "make its folder, writable for the worker")
	}
	defer func() { _ = os.RemoveAll(closed) }()
	hidden := filepath.Join(closed, "s")
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "unix", hidden)
	if err != nil {
		return nil, errs.NewOperator(object, "make the socket", err, "choose a path of less than 90 bytes in a folder that the worker may write to")
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	if err := os.Chmod(hidden, socketMode); err != nil {
		return nil, errs.NewOperator(object, "open the socket to its group", errors.Join(err, l.Close()), "")
	}
	if err := giveToGroup(hidden); err != nil {
		log.Warn("only root can use the gateway", "socket", path, "error", err)
	}
	if err := os.Rename(hidden, path); err != nil {
		return nil, errs.NewOperator(object, "put the socket in its place", errors.Join(err, l.Close()), "remove what is at that path")
	}
	return &socketListener{Listener: l, path: path, made: inodeOf(path)}, nil
}

func giveToGroup(path string) error {
	group, err := user.LookupGroup(config.Group)
	if err != nil {
		return fmt.Errorf("look up group %s: %w; make it: groupadd --system %s", config.Group, err, config.Group)
	}
	gid, err := strconv.Atoi(group.Gid)
	if err != nil {
		return fmt.Errorf("read the id of group %s: %w", config.Group, err)
	}
	if err := os.Chown(path, -1, gid); err != nil {
		return fmt.Errorf("give the socket to group %s: %w", config.Group, err)
	}
	return nil
}

// served reports whether somebody accepts connections on a socket.
func served(ctx context.Context, path string) bool {
	d := net.Dialer{Timeout: probeTimeout}
	conn, err := d.DialContext(ctx, "unix", path)
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}

// socketListener removes its socket on Close, unless another worker has put its own there.
type socketListener struct {
	net.Listener
	path string
	made uint64
}

// Addr gives the place where the socket is, not where it was made.
func (l *socketListener) Addr() net.Addr { return &net.UnixAddr{Name: l.path, Net: "unix"} }

// Close stops listening and removes the socket.
func (l *socketListener) Close() error {
	err := l.Listener.Close()
	if l.made != 0 && inodeOf(l.path) == l.made {
		_ = os.Remove(l.path)
	}
	return err
}

func inodeOf(path string) uint64 {
	info, err := os.Lstat(path)
	if err != nil {
		return 0
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Ino
	}
	return 0
}

func serverTLS(cfg config.Gateway) (*tls.Config, error) {
	object := "gateway at " + cfg.Address
	if cfg.TLS == nil {
		return nil, errs.NewPermanent(object, "listen", errs.Reason("%w: an address needs TLS, since whoever reaches it is root here", errs.ErrInvalid),
			"set gateway.tls in worker.json, or use gateway.socket")
	}
	tlsConfig, err := cfg.TLS.Server()
	if err != nil {
		return nil, errs.NewPermanent(object, "read its certificates", err, "correct gateway.tls in worker.json")
	}
	return tlsConfig, nil
}

func clientTLS(cfg config.Gateway) (*tls.Config, error) {
	object := "gateway at " + cfg.Address
	if cfg.TLS == nil {
		return nil, errs.NewPermanent(object, "connect", errs.Reason("%w: an address needs TLS", errs.ErrInvalid), "set gateway.tls in client.json")
	}
	tlsConfig, err := cfg.TLS.Client()
	if err != nil {
		return nil, errs.NewPermanent(object, "read its certificates", err, "correct gateway.tls in client.json; its files belong to group "+config.Group)
	}
	if tlsConfig.ServerName == "" {
		host, _, err := net.SplitHostPort(cfg.Address)
		if err != nil {
			return nil, errs.NewPermanent(object, "connect", err, "write gateway.address as HOST:PORT")
		}
		tlsConfig.ServerName = host
	}
	return tlsConfig, nil
}
