package tunnel

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"
)

const (
	// nameTimeout bounds how long a client may take to say where it wants to go.
	nameTimeout = 10 * time.Second
	maxName     = 256
	// maxConns bounds the connections of one run at a time: Ansible holds one a host.
	maxConns = 256
)

// Server connects a run's clients with servers.
type Server struct {
	// Dial opens a connection to a server by name; it refuses names that are not the run's.
	Dial func(ctx context.Context, name string) (net.Conn, error)
	// Failed is told of connections that could not be made. May be nil.
	Failed func(name string, err error)
}

// Serve accepts connections until ctx ends, and returns when all of them have ended.
// It closes l.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	return serve(ctx, l, s.connect)
}

// serve runs handle for each connection, which it closes afterwards and when ctx ends.
func serve(ctx context.Context, l net.Listener, handle func(context.Context, net.Conn)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(ctx, func() { _ = l.Close() })()
	var open sync.WaitGroup
	defer open.Wait()
	defer cancel() // before Wait: the connections end too
	room := make(chan struct{}, maxConns)
	for {
		conn, err := l.Accept()
		if err != nil {
			if ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
				return nil
			}
			return fmt.Errorf("accept on %s: %w", l.Addr(), err)
		}
		select {
		case room <- struct{}{}:
		default:
			_ = conn.Close()
			continue
		}
		open.Go(func() {
			defer func() { <-room }()
			defer conn.Close()
			defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
			handle(ctx, conn)
		})
	}
}

func (s *Server) connect(ctx context.Context, conn net.Conn) {
	_ = conn.SetReadDeadline(time.Now().Add(nameTimeout))
	client := bufio.NewReaderSize(conn, maxName)
	line, err := client.ReadSlice('\n')
	if err != nil {
		return
	}
	name := strings.TrimSuffix(string(line), "\n")
	_ = conn.SetReadDeadline(time.Time{})
	server, err := s.Dial(ctx, name)
	if err != nil {
		if s.Failed != nil && ctx.Err() == nil {
			s.Failed(name, err)
		}
		return
	}
	defer server.Close()
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	join(readWriter{client, conn}, server)
}

// readWriter reads what is left in the buffer first.
type readWriter struct {
	io.Reader
	net.Conn
}

func (rw readWriter) Read(p []byte) (int, error) { return rw.Reader.Read(p) }

// join copies both ways. The end of one direction is passed on as such, so that the other
// can still finish; ssh relies on it in neither, scp does.
func join(client readWriter, server net.Conn) {
	var up sync.WaitGroup
	up.Go(func() {
		_, err := io.Copy(server, client)
		closeWrite(server, err)
	})
	_, _ = io.Copy(client.Conn, server)
	// Nothing more will come from the server: the client is done.
	_ = client.Close()
	_ = server.Close()
	up.Wait()
}

func closeWrite(conn net.Conn, err error) {
	half, ok := conn.(interface{ CloseWrite() error })
	if ok && err == nil {
		_ = half.CloseWrite()
		return
	}
	_ = conn.Close()
}
