package libvirtx_test

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/libvirtx"
)

func TestADomainLivesFromDefineToUndefine(t *testing.T) {
	c := connect(t)
	ctx := t.Context()
	events := c.Events(ctx)
	await(t, events, libvirtx.EventConnected, "")
	d := guest(t, c)

	id, err := c.DomainUUID(ctx, d.Name)
	require.NoError(t, err)
	require.Equal(t, d.UUID, id)
	mark, err := c.Metadata(ctx, id, "urn:burrow-test")
	require.NoError(t, err)
	require.Contains(t, mark, `uid="u1"`)
	_, err = c.Metadata(ctx, id, "urn:other")
	require.ErrorIs(t, err, errs.ErrNotFound)

	require.NoError(t, c.StartPaused(ctx, id))
	state, reason, err := c.DomainState(ctx, id)
	require.NoError(t, err)
	require.Equal(t, "paused", state, reason)
	require.NoError(t, c.Resume(ctx, id))
	state, _, err = c.DomainState(ctx, id)
	require.NoError(t, err)
	require.Equal(t, "running", state)
	require.NoError(t, c.Shutdown(ctx, id))
	require.NoError(t, c.Destroy(ctx, id))
	require.NoError(t, c.Destroy(ctx, id), "off already")
	require.NoError(t, c.Undefine(ctx, id))
	_, _, err = c.DomainState(ctx, id)
	require.ErrorIs(t, err, errs.ErrNotFound)

	for _, kind := range []libvirtx.EventType{libvirtx.EventDefined, libvirtx.EventStarted, libvirtx.EventResumed} {
		require.Equal(t, d.Name, await(t, events, kind, id).Name)
	}
	require.Equal(t, "destroyed", await(t, events, libvirtx.EventStopped, id).Detail)
	await(t, events, libvirtx.EventUndefined, id)
}

func TestTheConsoleBelongsToOneAndEndsWithTheDomain(t *testing.T) {
	c := connect(t)
	ctx := t.Context()
	d := guest(t, c)
	_, err := c.Console(ctx, d.UUID)
	require.Error(t, err, "off")
	require.NoError(t, c.StartPaused(ctx, d.UUID))

	con, err := c.Console(ctx, d.UUID)
	require.NoError(t, err)
	_, err = c.Console(ctx, d.UUID)
	require.ErrorIs(t, err, errs.ErrBusy)

	require.NoError(t, c.Resume(ctx, d.UUID))
	text := make([]byte, 1)
	_, err = io.ReadFull(con, text) // SeaBIOS greets the serial port
	require.NoError(t, err)
	_, err = con.Write([]byte("\x1b"))
	require.NoError(t, err)

	closed := make(chan error, 1)
	go func() {
		_, err := io.Copy(io.Discard, con)
		closed <- err
	}()
	require.NoError(t, c.Destroy(ctx, d.UUID))
	require.NoError(t, <-closed, "the stream ends as a file does")
	require.NoError(t, con.Close())
	require.NoError(t, con.Close(), "twice is once")
}

func TestClosingTheConsoleEndsAPendingRead(t *testing.T) {
	c := connect(t)
	d := guest(t, c)
	require.NoError(t, c.StartPaused(t.Context(), d.UUID))
	con, err := c.Console(t.Context(), d.UUID)
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() {
		_, err := con.Read(make([]byte, 1))
		ended <- err
	}()
	require.NoError(t, con.Close())
	require.ErrorIs(t, <-ended, io.ErrClosedPipe)
	again, err := c.Console(t.Context(), d.UUID)
	require.NoError(t, err, "it was given back")
	require.NoError(t, again.Close())
}

func TestAConnectionSurvivesTheDeathOfLibvirtd(t *testing.T) {
	c := connect(t)
	ctx := t.Context()
	events := c.Events(ctx)
	await(t, events, libvirtx.EventConnected, "")
	d := guest(t, c)
	require.NoError(t, c.StartPaused(ctx, d.UUID))
	con, err := c.Console(ctx, d.UUID)
	require.NoError(t, err)

	restartLibvirtd(t)

	require.Eventually(t, func() bool { _, _, err := c.DomainState(ctx, d.UUID); return err == nil }, 20*time.Second, 50*time.Millisecond)
	state, _, err := c.DomainState(ctx, d.UUID)
	require.NoError(t, err)
	require.Equal(t, "paused", state, "the guest outlived libvirtd")
	await(t, events, libvirtx.EventConnected, "")
	require.NoError(t, c.Resume(ctx, d.UUID))
	await(t, events, libvirtx.EventResumed, d.UUID)
	_, err = io.Copy(io.Discard, con)
	require.NoError(t, err, "a console of before ends")
	require.NoError(t, con.Close())
}

func TestACallToAHangingLibvirtdEndsByItsDeadline(t *testing.T) {
	c := connect(t)
	d := guest(t, c)
	pid := libvirtd(t)
	require.NoError(t, unix.Kill(pid, unix.SIGSTOP))
	resume := func() { _ = unix.Kill(pid, unix.SIGCONT) }
	defer resume()

	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	began := time.Now()
	_, _, err := c.DomainState(ctx, d.UUID)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Equal(t, errs.Transient, errs.ClassOf(err))
	require.NotErrorIs(t, err, errs.ErrNotFound)
	require.Less(t, time.Since(began), 5*time.Second)

	ctx, cancel = context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, c.Undefine(ctx, d.UUID), errs.ErrBusy, "the first call still holds the domain")
	resume()
	require.Eventually(t, func() bool { _, _, err := c.DomainState(t.Context(), d.UUID); return err == nil }, 30*time.Second, 50*time.Millisecond)
	require.NoError(t, c.Undefine(t.Context(), d.UUID))
}

func TestWhereNoLibvirtdIsTheErrorSaysSo(t *testing.T) {
	c := libvirtx.New("qemu+unix:///system?socket=/run/no-such-socket", nil)
	defer c.Close()
	_, err := c.DomainUUID(t.Context(), "db")
	require.Error(t, err)
	require.Equal(t, errs.Transient, errs.ClassOf(err))
}

func TestADefinitionThatLibvirtCannotDoIsPermanent(t *testing.T) {
	c := connect(t)
	d := guest(t, c)
	d.UUID, d.Name = uuid.NewString(), "bad"
	d.OS.Type.Machine = "abacus"
	err := c.DefineDomain(t.Context(), d)
	require.Error(t, err)
	require.Equal(t, errs.Permanent, errs.ClassOf(err))
}

func TestHostAndVersionAreKnown(t *testing.T) {
	c := connect(t)
	host, err := c.Host(t.Context())
	require.NoError(t, err)
	require.Positive(t, host.CPUs)
	require.Positive(t, host.MemoryMiB)
	lib, qemu, err := c.Version(t.Context())
	require.NoError(t, err)
	require.Regexp(t, `^\d+\.\d+\.\d+$`, lib)
	require.Regexp(t, `^\d+\.\d+\.\d+$`, qemu)
}
