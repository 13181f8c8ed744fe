package gateway

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
)

func randomBytes(t *testing.T, n int) []byte {
	t.Helper()
	b := make([]byte, n)
	_, err := rand.Read(b)
	require.NoError(t, err)
	return b
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(sum[:])
}

func TestABundleIsUploadedOnceAndOnlyWhole(t *testing.T) {
	c := connect(t, serve(t, deps(t, &store{})))
	content := randomBytes(t, 3<<20+17)

	has, err := c.HasBundle(t.Context(), digest(content))
	require.NoError(t, err)
	require.False(t, has)

	upload := func(digest string, size int, b []byte) error {
		return c.UploadBundle(t.Context(), digest, int64(size), bytes.NewReader(b))
	}
	require.ErrorIs(t, upload(digest(content), len(content), append([]byte{content[0] ^ 1}, content[1:]...)), errs.ErrInvalid, "other bytes")
	require.ErrorIs(t, upload(digest(content), len(content), content[:len(content)-1]), errs.ErrInvalid, "too few")
	require.ErrorIs(t, upload(digest(content), len(content)-1, content), errs.ErrInvalid, "too many")
	require.ErrorIs(t, upload("sha256:../../etc", len(content), content), errs.ErrInvalid, "no digest")
	require.ErrorIs(t, upload(digest(content), MaxBundle+1, content), errs.ErrInvalid, "too large")
	has, err = c.HasBundle(t.Context(), digest(content))
	require.NoError(t, err)
	require.False(t, has)

	require.NoError(t, upload(digest(content), len(content), content))
	require.NoError(t, upload(digest(content), len(content), content), "twice is success")
	has, err = c.HasBundle(t.Context(), digest(content))
	require.NoError(t, err)
	require.True(t, has)

	var back bytes.Buffer
	require.NoError(t, c.DownloadBundle(t.Context(), digest(content), &back))
	require.Equal(t, content, back.Bytes())
	require.ErrorIs(t, c.DownloadBundle(t.Context(), digest([]byte("another")), io.Discard), errs.ErrNotFound)
	require.ErrorIs(t, c.DownloadBundle(t.Context(), "sha256:../../etc", io.Discard), errs.ErrInvalid)
}

// listenTCP runs serve for each connection to a port of its own on loopback.
func listenTCP(t *testing.T, serve func(*net.TCPConn)) (port int) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var group sync.WaitGroup
	group.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			group.Go(func() {
				defer func() { _ = conn.Close() }()
				serve(conn.(*net.TCPConn))
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		group.Wait()
	})
	return l.Addr().(*net.TCPAddr).Port
}

func halfClose(t *testing.T, conn net.Conn) {
	t.Helper()
	require.NoError(t, conn.(interface{ CloseWrite() error }).CloseWrite())
}

func TestADialledConnectionCarriesBytesAndHalfCloses(t *testing.T) {
	content := randomBytes(t, 5<<20)
	port := listenTCP(t, func(conn *net.TCPConn) {
		all, err := io.ReadAll(conn) // returns only when the client's half is closed
		if err == nil {
			_, _ = conn.Write(all)
		}
	})
	c := connect(t, serve(t, deps(t, &store{records: []manifest.Record{server("db", "127.0.0.1/8")}})))
	conn, err := c.DialServer(t.Context(), "db", port)
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	require.Equal(t, "127.0.0.1:"+strconv.Itoa(port), conn.RemoteAddr().String())
	_, err = conn.Write(content)
	require.NoError(t, err)
	halfClose(t, conn)
	got, err := io.ReadAll(conn)
	require.NoError(t, err)
	require.True(t, bytes.Equal(content, got))
	_, err = conn.Write([]byte("late"))
	require.ErrorIs(t, err, net.ErrClosed)
}

func TestTheFarEndMayStopSendingAndGoOnReading(t *testing.T) {
	received := make(chan []byte, 1)
	port := listenTCP(t, func(conn *net.TCPConn) {
		_, _ = conn.Write([]byte("bye"))
		_ = conn.CloseWrite()
		all, _ := io.ReadAll(conn)
		received <- all
	})
	c := connect(t, serve(t, deps(t, &store{records: []manifest.Record{server("db", "127.0.0.1/8")}})))
	conn, err := c.DialServer(t.Context(), "db", port)
	require.NoError(t, err)
	got, err := io.ReadAll(conn)
	require.NoError(t, err)
	require.Equal(t, "bye", string(got))
	_, err = conn.Write([]byte("still here"))
	require.NoError(t, err)
	halfClose(t, conn)
	require.Equal(t, "still here", string(<-received))
	require.NoError(t, conn.Close())
}

func TestClosingEitherEndClosesTheOther(t *testing.T) {
	far := make(chan error, 1)
	port := listenTCP(t, func(conn *net.TCPConn) {
		_, err := conn.Read(make([]byte, 1))
		far <- err
	})
	gone := listenTCP(t, func(conn *net.TCPConn) {
		_, _ = conn.Read(make([]byte, 1)) // it is open by now
		_ = conn.SetLinger(0)
	})
	c := connect(t, serve(t, deps(t, &store{records: []manifest.Record{server("db", "127.0.0.1/8")}})))

	conn, err := c.DialServer(t.Context(), "db", port)
	require.NoError(t, err)
	require.NoError(t, conn.Close())
	select {
	case err := <-far:
		require.Error(t, err)
	case <-time.After(soon):
		require.Fail(t, "the far end was not closed")
	}
	_, err = conn.Read(make([]byte, 1))
	require.ErrorIs(t, err, net.ErrClosed)

	conn, err = c.DialServer(t.Context(), "db", gone)
	require.NoError(t, err)
	_, err = conn.Write([]byte("x"))
	require.NoError(t, err)
	_, err = conn.Read(make([]byte, 1))
	require.Error(t, err)
	require.NoError(t, conn.Close())
}

func TestASlowReaderHoldsBackOnlyItself(t *testing.T) {
	port := listenTCP(t, func(conn *net.TCPConn) {
		_, _ = io.Copy(conn, io.LimitReader(zeros{}, 64<<20))
	})
	c := connect(t, serve(t, deps(t, &store{records: []manifest.Record{server("db", "127.0.0.1/8")}})))
	slow, err := c.DialServer(t.Context(), "db", port)
	require.NoError(t, err)
	defer func() { _ = slow.Close() }()

	quick, err := c.DialServer(t.Context(), "db", port)
	require.NoError(t, err)
	n, err := io.Copy(io.Discard, quick)
	require.NoError(t, err)
	require.EqualValues(t, 64<<20, n)
	require.NoError(t, quick.Close())
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

func TestAReadDeadlineEndsAReadAndNotTheConnection(t *testing.T) {
	release := make(chan struct{})
	port := listenTCP(t, func(conn *net.TCPConn) {
		<-release
		_, _ = conn.Write([]byte("now"))
	})
	c := connect(t, serve(t, deps(t, &store{records: []manifest.Record{server("db", "127.0.0.1/8")}})))
	conn, err := c.DialServer(t.Context(), "db", port)
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(10*time.Millisecond)))
	_, err = conn.Read(make([]byte, 3))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	require.NoError(t, conn.SetReadDeadline(time.Time{}))
	close(release)
	got := make([]byte, 3)
	_, err = io.ReadFull(conn, got)
	require.NoError(t, err)
	require.Equal(t, "now", string(got))
}

func TestTheAddressThatAnswersIsUsed(t *testing.T) {
	port := listenTCP(t, func(conn *net.TCPConn) { _, _ = conn.Write([]byte("hi")) })
	// Nobody listens on the first two; the last one does.
	rec := server("db", "127.0.0.2/8", "127.0.0.3/8", "127.0.0.1/8")
	c := connect(t, serve(t, deps(t, &store{records: []manifest.Record{rec}})))
	conn, err := c.DialServer(t.Context(), "db", port)
	require.NoError(t, err)
	require.Equal(t, "127.0.0.1:"+strconv.Itoa(port), conn.RemoteAddr().String())
	require.NoError(t, conn.Close())
}

func TestAServerThatCannotBeReachedSaysWhy(t *testing.T) {
	elsewhere := server("far", "127.0.0.1/8")
	elsewhere.Status.Host = "kvm2"
	unbuilt := server("new")
	unbuilt.Status.Phase = manifest.PhaseProvisioning
	c := connect(t, serve(t, deps(t, &store{records: []manifest.Record{server("db", "127.0.0.1/8"), elsewhere, unbuilt}})))
	for name, want := range map[string]string{
		"far":  "it is on host kvm2, and this gateway is on kvm1",
		"new":  "it has no address (it is Provisioning); follow it: burrow watch server/new",
		"none": "server/none: look up: not found; `burrow get server` lists what there is",
		"db":   "server/db: connect to port 1: unavailable",
	} {
		_, err := c.DialServer(t.Context(), name, 1)
		require.ErrorContains(t, err, want)
	}
	_, err := c.DialServer(t.Context(), "db", 70000)
	require.ErrorContains(t, err, "1 to 65535")
}

func TestOpeningEndsWithItsContext(t *testing.T) {
	blocked := make(chan struct{})
	d := deps(t, &store{records: []manifest.Record{server("db", "127.0.0.1/8")}})
	d.Consoles = consoles(func(string) (io.ReadWriteCloser, error) { <-blocked; return nil, io.EOF })
	c := connect(t, serve(t, d))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err := c.Console(ctx, "db")
	close(blocked)
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestAConsoleIsJoinedAndLeft(t *testing.T) {
	near, far := net.Pipe()
	d := deps(t, &store{records: []manifest.Record{server("db")}})
	d.Consoles = consoles(func(uid string) (io.ReadWriteCloser, error) {
		if uid != "uid-of-db" {
			return nil, errs.ErrNotFound
		}
		return far, nil
	})
	c := connect(t, serve(t, d))
	conn, err := c.Console(t.Context(), "db")
	require.NoError(t, err)
	_, err = conn.Write([]byte("ls\n"))
	require.NoError(t, err)
	got := make([]byte, 3)
	_, err = io.ReadFull(near, got)
	require.NoError(t, err)
	_, err = near.Write([]byte("login: "))
	require.NoError(t, err)
	got = make([]byte, 7)
	_, err = io.ReadFull(conn, got)
	require.NoError(t, err)
	require.Equal(t, "login: ", string(got))
	require.NoError(t, conn.Close())
	_, err = near.Read(got)
	require.ErrorIs(t, err, io.EOF, "the console is free again")
}

func TestALogIsReadFollowedAndLeft(t *testing.T) {
	reader, writer := io.Pipe()
	d := deps(t, &store{records: []manifest.Record{server("db"), server("new")}})
	d.Logs = runLogs(func(_ context.Context, rec manifest.Record, run string, follow bool) (io.ReadCloser, error) {
		switch {
		case rec.Metadata.UID != "uid-of-db" || run == "none":
			return nil, errs.ErrNotFound
		case follow:
			return reader, nil
		}
		return io.NopCloser(bytes.NewReader([]byte("PLAY [all]\n"))), nil
	})
	c := connect(t, serve(t, d))
	var out bytes.Buffer
	err := c.Logs(t.Context(), "new", "", false, &out)
	require.ErrorIs(t, err, errs.ErrNotFound)
	require.EqualError(t, err, "server/new: read its log: not found: no playbook has run on it yet; `burrow describe server/new` shows how it stands")
	require.NoError(t, c.Logs(t.Context(), "db", "", false, &out))
	require.Equal(t, "PLAY [all]\n", out.String())
	err = c.Logs(t.Context(), "db", "none", false, &out)
	require.ErrorIs(t, err, errs.ErrNotFound)
	require.ErrorContains(t, err, `server/db: read its log: not found: it has no run "none"; leave --run out`)

	ctx, cancel := context.WithCancel(t.Context())
	var writing sync.WaitGroup
	writing.Go(func() { _, _ = writer.Write([]byte("TASK [install]\n")) })
	err = c.Logs(ctx, "db", "", true, writerFunc(func(p []byte) (int, error) {
		cancel()
		return len(p), nil
	}))
	writing.Wait()
	require.ErrorIs(t, err, context.Canceled)
	require.Eventually(t, func() bool {
		_, err := writer.Write([]byte("more")) // waits for a reader, or for the gateway to close it
		return errors.Is(err, io.ErrClosedPipe)
	}, soon, time.Millisecond)
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
