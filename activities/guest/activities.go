package guest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"time"

	"go.temporal.io/sdk/activity"
	"golang.org/x/crypto/ssh"
	"golang.org/x/sync/errgroup"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
)

const (
	// heartbeatEvery lets a cancellation arrive within a second.
	heartbeatEvery = 400 * time.Millisecond
	// lastWords is how long before the activity's deadline the wait ends by itself, so
	// that the error says where the guest stood, which a bare timeout does not.
	lastWords = 3 * time.Second
)

// Dialer opens a connection inside a network's namespace on this host.
type Dialer interface {
	DialNetwork(ctx context.Context, network, address string) (net.Conn, error)
}

// Keys gives the management key of a server.
type Keys interface {
	Management(ctx context.Context, serverUID string) (ssh.Signer, error)
}

// Console gives the last line that a server's console has shown; "" when unknown.
type Console interface {
	ConsoleTail(ctx context.Context, server activities.Server) string
}

// Options are what the activities work with. Dialer and Keys are required; without a
// Console the heartbeat has no console line; Log defaults to slog.Default.
type Options struct {
	Dialer  Dialer
	Keys    Keys
	Console Console
	Log     *slog.Logger
	// HostKeyPatience is how long another host key than the pinned one is put up with:
	// an image may start sshd with its own before cloud-init replaces it. Default 60 s.
	HostKeyPatience time.Duration
	// PanicPatience is how long a kernel's panic has to be the console's last word: one that
	// is set to restarts by itself. Default 30 s.
	PanicPatience time.Duration
}

// Activities wait for guests. Safe for concurrent use.
type Activities struct {
	o    Options
	beat func(context.Context, Progress)
}

// New makes the activities.
func New(o Options) *Activities {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.HostKeyPatience == 0 {
		o.HostKeyPatience = 60 * time.Second
	}
	if o.PanicPatience == 0 {
		o.PanicPatience = 30 * time.Second
	}
	return &Activities{o: o, beat: beat}
}

// WaitReady waits until the guest is ready as in.Readiness says. Shortly before the
// activity's deadline it gives up with an Operator error that says where the guest stood, and
// sooner when the guest's kernel has panicked.
func (a *Activities) WaitReady(ctx context.Context, in WaitReadyIn) (WaitReadyOut, error) {
	targets := targetsOf(in.Ports)
	if in.Readiness == manifest.ReadinessRunning {
		out := WaitReadyOut{}
		if len(targets) > 0 {
			out.Address = targets[0].address
		}
		return out, nil
	}
	if len(targets) == 0 {
		return WaitReadyOut{}, errs.NewPermanent(in.Server.Ref(), "wait until ready",
			errs.Reason("it has no address that burrow knows"), "give it one, or set spec.readiness: running")
	}
	login, err := a.login(ctx, in)
	if err != nil {
		return WaitReadyOut{}, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	progress := &progress{}
	wait, stop := context.WithDeadline(ctx, giveUpAt(ctx))
	defer stop()
	wait, giveUp := context.WithCancelCause(wait)
	defer giveUp(nil)

	g, beat := errgroup.WithContext(ctx)
	g.Go(func() error { a.heartbeat(beat, in.Server, progress, giveUp); return nil })
	out, err := a.reach(wait, in, login, targets, progress)
	switch {
	case err == nil || ctx.Err() != nil:
	case errors.Is(context.Cause(wait), errPanic):
		err = errs.NewOperator(in.Server.Ref(), "wait until ready", context.Cause(wait),
			"on its host, consoles/"+in.Server.UID+".log in burrow's data directory has what came before; try another image, or again: an emulated guest on a busy machine may find no clock")
	case wait.Err() != nil:
		err = neverReady(in.Server, progress)
	}
	cancel()
	_ = g.Wait()
	return out, err
}

// giveUpAt is shortly before the activity's deadline, which Temporal sets on ctx.
func giveUpAt(ctx context.Context) time.Time {
	const never = 365 * 24 * time.Hour // outside an activity there may be none
	deadline, ok := ctx.Deadline()
	if !ok {
		return time.Now().Add(never)
	}
	return deadline.Add(-lastWords)
}

func neverReady(server activities.Server, p *progress) error {
	now, last := p.now()
	cause := fmt.Errorf("its time is over at stage %q", now.Stage)
	if last != nil {
		cause = fmt.Errorf("%w; last answer: %w", cause, last)
	}
	if now.Console != "" {
		cause = fmt.Errorf("%w; console: %s", cause, now.Console)
	}
	return errs.NewOperator(server.Ref(), "wait until ready", cause,
		fmt.Sprintf("look at burrow console %s, then burrow retry %s", server.Name, server.Ref()))
}

// target is one address to try.
type target struct {
	network string
	address string // without prefix length
}

func targetsOf(ports []manifest.Port) []target {
	var targets []target
	for _, p := range ports {
		for _, text := range p.Addresses {
			addr := text
			if prefix, err := netip.ParsePrefix(text); err == nil {
				addr = prefix.Addr().String()
			}
			targets = append(targets, target{network: p.Network, address: addr})
		}
	}
	return targets
}

// errPanic: the guest's kernel has panicked, and does not restart.
var errPanic = errors.New("its kernel has panicked")

// heartbeat reports the stage until ctx ends, and gives a guest up whose kernel is dead.
func (a *Activities) heartbeat(ctx context.Context, server activities.Server, p *progress, giveUp context.CancelCauseFunc) {
	ticker := time.NewTicker(heartbeatEvery)
	defer ticker.Stop()
	for {
		if a.o.Console != nil {
			p.setConsole(a.o.Console.ConsoleTail(ctx, server))
		}
		now, _ := p.now()
		a.beat(ctx, now)
		if p.panicked(a.o.PanicPatience) {
			giveUp(fmt.Errorf("%w: %s", errPanic, now.Console))
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// beat sends a heartbeat to Temporal; outside an activity there is nobody to send it to.
func beat(ctx context.Context, p Progress) {
	if activity.IsActivity(ctx) {
		activity.RecordHeartbeat(ctx, p)
	}
}
