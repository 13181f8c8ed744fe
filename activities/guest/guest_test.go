package guest

import (
	"context"
	"crypto/ed25519"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
	"burrow.dev/burrow/test/lab"
)

// TestMain runs the tests inside a host of their own, for the real sshd among them.
func TestMain(m *testing.M) { lab.Main(m) }

func signer(t testing.TB, seed byte) ssh.Signer {
	t.Helper()
	s, err := ssh.NewSignerFromKey(ed25519.NewKeyFromSeed([]byte(strings.Repeat(string(rune(seed)), 32))))
	require.NoError(t, err)
	return s
}

func line(s ssh.Signer) string { return string(ssh.MarshalAuthorizedKey(s.PublicKey())) }

// dialer leads every address to one place; addresses it does not know answer nothing.
type dialer map[string]string

func (d dialer) DialNetwork(ctx context.Context, network, address string) (net.Conn, error) {
	to, ok := d[network+" "+address]
	if !ok {
		return nil, errors.New("no route to host")
	}
	return (&net.Dialer{}).DialContext(ctx, "tcp", to)
}

type keyring struct{ s ssh.Signer }

func (k keyring) Management(context.Context, string) (ssh.Signer, error) { return k.s, nil }

type console string

func (c console) ConsoleTail(context.Context, activities.Server) string { return string(c) }

func (g *guestSSH) activities() *Activities {
	return New(Options{
		Dialer: dialer{"db-net 172.16.90.2:22": g.listener.Addr().String()},
		Keys:   keyring{signer(g.t, 'm')}, Console: console("\x1b[32m[ OK ]\x1b[0m Reached target\r\n"),
		HostKeyPatience: time.Second,
	})
}

func (g *guestSSH) in(r manifest.Readiness) WaitReadyIn {
	return WaitReadyIn{
		Server: activities.Server{Name: "db", UID: "u"}, Login: "debian", HostKeys: []string{line(signer(g.t, 'h'))}, Readiness: r,
		Ports: []manifest.Port{
			{Network: "host-bridge", Addresses: []string{"172.16.80.2/24"}},
			{Network: "db-net", Addresses: []string{"172.16.90.2/24"}},
		},
	}
}

func bounded10s(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func TestTheAddressThatAnswersIsFound(t *testing.T) {
	g := startGuest(t)
	for _, r := range []manifest.Readiness{manifest.ReadinessSSH, manifest.ReadinessCloudInit} {
		out, err := g.activities().WaitReady(bounded10s(t), g.in(r))
		require.NoError(t, err)
		require.Equal(t, WaitReadyOut{Address: "172.16.90.2"}, out)
	}
}

func TestRunningAsksNothing(t *testing.T) {
	out, err := New(Options{}).WaitReady(t.Context(), WaitReadyIn{Readiness: manifest.ReadinessRunning})
	require.NoError(t, err)
	require.Empty(t, out)
}

func TestOpenPortIsNotReady(t *testing.T) {
	cases := map[string]struct{ before, after func(*guestSSH) }{
		"key not installed yet": {
			func(g *guestSSH) { g.accept = nil },
			func(g *guestSSH) { g.accept = signer(g.t, 'm').PublicKey() },
		},
		"no banner": {
			func(g *guestSSH) { g.silent = true },
			func(g *guestSSH) { g.silent = false; _ = g },
		},
		"sessions refused while it boots": {
			func(g *guestSSH) { g.noShell = true },
			func(g *guestSSH) { g.noShell = false },
		},
		"the image's host key, for a moment": {
			func(g *guestSSH) { g.hostKey = signer(g.t, 'x') },
			func(g *guestSSH) { g.hostKey = signer(g.t, 'h') },
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			g := startGuest(t)
			c.before(g)
			a := g.activities()
			if name == "no banner" {
				a.o.Dialer = closingDialer{a.o.Dialer, 300 * time.Millisecond}
			}
			time.AfterFunc(700*time.Millisecond, func() { g.set(func() { c.after(g) }) })
			start := time.Now()
			_, err := a.WaitReady(bounded10s(t), g.in(manifest.ReadinessSSH))
			require.NoError(t, err)
			require.Greater(t, time.Since(start), 600*time.Millisecond)
		})
	}
}

// closingDialer gives connections that end after a while, so that a silent guest does not cost the full handshake timeout.
type closingDialer struct {
	Dialer
	after time.Duration
}

func (d closingDialer) DialNetwork(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := d.Dialer.DialNetwork(ctx, network, address)
	if err == nil {
		time.AfterFunc(d.after, func() { _ = c.Close() })
	}
	return c, err
}

func TestAWrongHostKeyThatStaysIsForAPerson(t *testing.T) {
	g := startGuest(t)
	g.hostKey = signer(t, 'x')
	_, err := g.activities().WaitReady(bounded10s(t), g.in(manifest.ReadinessSSH))
	require.ErrorContains(t, err, "server/db: log in: it shows another host key than the pinned one")
	require.Equal(t, errs.Operator, errs.ClassOf(err))
	require.Zero(t, g.logins.Load(), "nobody logged in to a stranger")
}

func TestCloudInitIsWaitedForAndItsOwnErrorIsTold(t *testing.T) {
	cases := map[string]struct {
		output string
		exit   int
		warn   string
		says   string
	}{
		"done":             {`{"status":"done","errors":[]}`, 0, "", ""},
		"degraded":         {`{"status":"done","extended_status":"degraded done","errors":[],"recoverable_errors":{"WARNING":["Failed to set hostname\u001b[2J"]}}`, 2, "cloud-init finished degraded: WARNING: Failed to set hostname", ""},
		"error":            {`{"status":"error","errors":["('runcmd', ProcessExecutionError())"],"detail":"x"}`, 1, "", "cloud-init failed: ('runcmd', ProcessExecutionError())"},
		"error, old form":  {`{"status":"error","detail":"failed run of stage modules-final"}`, 1, "", "failed run of stage modules-final"},
		"disabled":         {`{"status":"disabled"}`, 0, "cloud-init is disabled in the guest", ""},
		"not installed":    {"", 127, "cloud-init is not installed in the guest", ""},
		"a traceback":      {"Traceback\x1b[0m (most recent call last)", 1, "", "cloud-init status ends with 1: Traceback (most recent call last)"},
		"unreadable, well": {"status: done", 0, "cloud-init's answer cannot be read", ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			g := startGuest(t)
			asked := 0
			g.command = func(text string) (string, int) {
				if asked++; asked == 1 {
					require.NotContains(t, text, "status")
					return "", 1 // not settled yet
				}
				if asked == 3 {
					return `{"status":"running"}`, 0 // settled, the unit has not ended
				}
				if text == settled {
					return "", 0
				}
				return c.output, c.exit
			}
			out, err := g.activities().WaitReady(bounded10s(t), g.in(manifest.ReadinessCloudInit))
			require.Equal(t, c.warn, out.Warning)
			if c.says == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.says)
			require.ErrorContains(t, err, "burrow retry server/db")
			require.Equal(t, errs.Operator, errs.ClassOf(err))
			require.NotContains(t, err.Error(), "\x1b")
		})
	}
}

func TestCancellingEndsTheWaitAtOnce(t *testing.T) {
	g := startGuest(t)
	g.silent = true
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(300*time.Millisecond, cancel)
	start := time.Now()
	_, err := g.activities().WaitReady(ctx, g.in(manifest.ReadinessCloudInit))
	require.ErrorIs(t, err, context.Canceled)
	require.Less(t, time.Since(start), 2*time.Second)
}

func TestAServerWithoutAddressIsRefused(t *testing.T) {
	_, err := New(Options{}).WaitReady(t.Context(), WaitReadyIn{
		Server: activities.Server{Name: "db"}, Readiness: manifest.ReadinessSSH, Ports: []manifest.Port{{Network: "n", DHCP4: true}},
	})
	require.ErrorContains(t, err, "has no address that burrow knows")
	require.Equal(t, errs.Permanent, errs.ClassOf(err))
}

func TestBeforeItsDeadlineTheWaitSaysWhereTheGuestStood(t *testing.T) {
	g := startGuest(t)
	g.accept = nil
	ctx, cancel := context.WithTimeout(t.Context(), lastWords+2*time.Second)
	defer cancel()
	_, err := g.activities().WaitReady(ctx, g.in(manifest.ReadinessSSH))
	require.ErrorContains(t, err, `its time is over at stage "login"; last answer: permission denied for user debian`)
	require.ErrorContains(t, err, "console: [ OK ] Reached target")
	require.Equal(t, errs.Operator, errs.ClassOf(err))
}

func TestAGuestWhoseKernelHasPanickedIsNotWaitedFor(t *testing.T) {
	g := startGuest(t)
	g.accept = nil
	a := g.activities()
	a.o.Console = console("[    0.056000] ---[ end Kernel panic - not syncing: IO-APIC + timer doesn't work!  Boot with apic=debug ]---\n")
	a.o.PanicPatience = time.Millisecond
	_, err := a.WaitReady(t.Context(), g.in(manifest.ReadinessSSH))
	require.ErrorContains(t, err, "its kernel has panicked: [ 0.056000] ---[ end Kernel panic - not syncing: IO-APIC")
	require.Equal(t, errs.Operator, errs.ClassOf(err))
}

func TestTheHeartbeatCarriesStageAndConsole(t *testing.T) {
	g := startGuest(t)
	g.accept = nil
	a := g.activities()
	a.beat = func(_ context.Context, p Progress) {
		if (p == Progress{Stage: "login", Console: "[ OK ] Reached target"}) {
			g.set(func() { g.accept = signer(t, 'm').PublicKey() }) // seen: let it in, the wait ends
		}
	}
	_, err := a.WaitReady(bounded10s(t), g.in(manifest.ReadinessSSH))
	require.NoError(t, err)
}
