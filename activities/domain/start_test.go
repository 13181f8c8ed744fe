package domain_test

import (
	"context"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"burrow.dev/burrow/activities/domain"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/libvirtx"
	"burrow.dev/burrow/internal/ovsx"
)

// killLibvirtd kills it and returns when it is gone.
func killLibvirtd(t *testing.T) {
	t.Helper()
	text, err := os.ReadFile("/run/libvirtd.pid")
	require.NoError(t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	require.NoError(t, err)
	require.NoError(t, unix.Kill(pid, unix.SIGKILL))
	require.Eventually(t, func() bool { return unix.Kill(pid, 0) != nil }, 10*time.Second, 10*time.Millisecond)
}

// A libvirtd that comes back ends each QEMU whose start it had not finished, and shows it
// for a moment before that.
func TestAStartThatLibvirtdDidNotSurviveIsReportedWhenItHolds(t *testing.T) {
	s := newSite(t)
	for moment := 50 * time.Millisecond; moment <= 800*time.Millisecond; moment += 150 * time.Millisecond {
		in := s.input(t)
		began := make(chan error, 1)
		go func() {
			_, err := s.Start(t.Context(), in)
			began <- err
		}()
		<-time.After(moment)
		killLibvirtd(t)
		run(t, "libvirtd", "-d")
		<-began
		require.Eventually(t, func() bool {
			_, err := s.Start(t.Context(), in)
			return err == nil
		}, time.Minute, time.Millisecond, moment)
		resumed, err := s.Resume(t.Context(), domain.ResumeIn{Server: in.Server})
		require.NoError(t, err, moment)
		require.False(t, resumed.Off, moment)
		require.Equal(t, "running", s.stateOf(t, in), moment)
	}
}

// unfinished is a libvirt that has not finished the start of any domain.
type unfinished struct{ *libvirtx.Connection }

func (u unfinished) DomainState(ctx context.Context, uuid string) (state, reason string, err error) {
	if state, reason, err = u.Connection.DomainState(ctx, uuid); state == "paused" {
		reason = "starting-up"
	}
	return state, reason, err
}

func TestAGuestThatIsBeingStartedIsNoGuestYet(t *testing.T) {
	s := newSite(t)
	in := s.input(t)
	_, err := s.Start(t.Context(), in)
	require.NoError(t, err)
	early := domain.New(domain.Config{Libvirt: unfinished{s.conn}, Switch: ovsx.New(), Accelerator: "tcg", ConsoleDir: s.dir})
	_, err = early.Start(t.Context(), in)
	require.ErrorIs(t, err, errs.ErrBusy)
	require.Equal(t, errs.Transient, errs.ClassOf(err))
	_, err = early.Resume(t.Context(), domain.ResumeIn{Server: in.Server})
	require.Equal(t, errs.Transient, errs.ClassOf(err))
	require.ErrorContains(t, err, "being started")
	_, err = early.Shutdown(t.Context(), domain.ShutdownIn{Server: in.Server, GraceSeconds: 600})
	require.NoError(t, err, "it is forced off at once")
}

func TestAGuestThatWasKilledIsFoundOffAndStartsAgain(t *testing.T) {
	s := newSite(t)
	in := s.input(t)
	_, err := s.Start(t.Context(), in)
	require.NoError(t, err)
	text, err := os.ReadFile("/run/libvirt/qemu/" + in.Server.Name + ".pid")
	require.NoError(t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	require.NoError(t, err)
	require.NoError(t, unix.Kill(pid, unix.SIGKILL))
	require.Eventually(t, func() bool {
		out, err := s.Resume(t.Context(), domain.ResumeIn{Server: in.Server})
		return err == nil && out.Off
	}, 30*time.Second, 10*time.Millisecond)
	out, err := s.Start(t.Context(), in)
	require.NoError(t, err)
	require.Equal(t, "paused", out.State)
}

// late looks a moment before an earlier attempt, which was given up and is still at work,
// has defined the domain.
type late struct {
	*libvirtx.Connection
	looked bool
}

func (l *late) DomainState(ctx context.Context, uuid string) (state, reason string, err error) {
	if !l.looked {
		l.looked = true
		return "", "", errs.ErrNotFound
	}
	return l.Connection.DomainState(ctx, uuid)
}

func TestADomainThatAnEarlierAttemptDefinesMeanwhileIsTheServersOwn(t *testing.T) {
	s := newSite(t)
	in, _ := s.started(t)
	_, err := s.Shutdown(t.Context(), domain.ShutdownIn{Server: in.Server})
	require.NoError(t, err)
	again := domain.New(domain.Config{Libvirt: &late{Connection: s.conn}, Switch: ovsx.New(), Accelerator: "tcg", ConsoleDir: s.dir})
	out, err := again.Start(t.Context(), in)
	require.NoError(t, err)
	require.Equal(t, "paused", out.State)
}
