package guest

import (
	"context"
	"errors"
	"net"
	"time"

	"golang.org/x/sync/errgroup"

	"burrow.dev/burrow/manifest"
)

const (
	// tryEvery is the pause between attempts: short against a boot, long enough that ten
	// servers that boot on one host are not slowed by being asked.
	tryEvery = 500 * time.Millisecond
	// dialTimeout: an address on the same host answers at once or is not there yet.
	dialTimeout = 5 * time.Second
	// handshakeTimeout: key exchange and login in an emulated guest that is busy booting
	// take several seconds.
	handshakeTimeout = 30 * time.Second
	sshPort          = "22"
)

// reach tries all targets side by side until one is ready or one fails for good.
func (a *Activities) reach(ctx context.Context, in WaitReadyIn, l *login, targets []target, p *progress) (WaitReadyOut, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	g, ctx := errgroup.WithContext(ctx)
	ready := make(chan WaitReadyOut, len(targets))
	for _, t := range targets {
		g.Go(func() error {
			out, err := a.pursue(ctx, in, l, t, p)
			if err == nil {
				ready <- out
				cancel() // the others need not go on
			}
			return err
		})
	}
	err := g.Wait()
	select {
	case out := <-ready:
		return out, nil
	default:
		return WaitReadyOut{}, err
	}
}

// pursue tries one target until it is ready, ctx ends, or waiting is of no use.
func (a *Activities) pursue(ctx context.Context, in WaitReadyIn, l *login, t target, p *progress) (WaitReadyOut, error) {
	ticker := time.NewTicker(tryEvery)
	defer ticker.Stop()
	for {
		warning, err := a.attempt(ctx, in, l, t, p)
		if err == nil {
			return WaitReadyOut{Address: t.address, Warning: warning}, nil
		}
		var final *finalError
		if errors.As(err, &final) {
			return WaitReadyOut{}, final.err
		}
		select {
		case <-ctx.Done():
			return WaitReadyOut{}, ctx.Err()
		case <-ticker.C:
		}
	}
}

// finalError is one that no waiting mends.
type finalError struct{ err error }

func (f *finalError) Error() string { return f.err.Error() }

// attempt goes through the stages once.
func (a *Activities) attempt(ctx context.Context, in WaitReadyIn, l *login, t target, p *progress) (warning string, err error) {
	p.reached(stageTCP)
	dial, cancel := context.WithTimeout(ctx, dialTimeout)
	conn, err := a.o.Dialer.DialNetwork(dial, t.network, net.JoinHostPort(t.address, sshPort))
	cancel()
	if err != nil {
		p.failed(stageTCP, err)
		return "", err
	}
	defer conn.Close()
	// A closed connection is the only thing that wakes a blocked SSH call.
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()

	p.reached(stageBanner)
	client, err := l.connect(conn, p)
	if err != nil {
		return "", err
	}
	defer client.Close()
	if in.Readiness == manifest.ReadinessSSH {
		return "", nil
	}
	p.reached(stageCloudInit)
	return awaitCloudInit(ctx, in.Server, conn, client, p)
}
