package domain

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"time"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
)

const (
	// lookEvery is how often a domain that goes off is looked at.
	lookEvery = 100 * time.Millisecond
	// pressEvery is how often the power button is pressed again: a guest that is still
	// booting does not hear it.
	pressEvery = 10 * time.Second
	// offTimeout is for a destroyed domain to be off: libvirt itself kills QEMU after 15 s.
	offTimeout = time.Minute
)

// Shutdown powers the server off: by ACPI, and by force when the grace is over. Off, or
// no domain at all, is success. One whose CPUs do not run yet cannot hear the button and is
// forced.
func (a *Activities) Shutdown(ctx context.Context, in ShutdownIn) (activities.Nothing, error) {
	id := manifest.DomainUUID(in.Server.UID)
	state, err := a.own(ctx, in.Server, "shut down")
	switch {
	case errors.Is(err, errs.ErrNotFound), err == nil && state == stateOff:
		return activities.Nothing{}, nil
	case err != nil:
		return activities.Nothing{}, err
	case state != statePaused && state != stateStarting && in.GraceSeconds > 0:
		off, err := a.press(ctx, id, time.Duration(in.GraceSeconds)*time.Second)
		if err != nil {
			return activities.Nothing{}, about(in.Server, "shut down", err)
		}
		if off {
			return activities.Nothing{}, nil
		}
		a.cfg.Log.Warn("the guest does not obey its power button; forcing it off", "server", in.Server.Name)
	}
	if err := a.pullPlug(ctx, id); err != nil {
		return activities.Nothing{}, about(in.Server, "force off", err)
	}
	return activities.Nothing{}, nil
}

// press presses the power button until the guest is off or the grace is over.
func (a *Activities) press(ctx context.Context, id string, grace time.Duration) (off bool, err error) {
	within, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	again := time.NewTicker(pressEvery)
	defer again.Stop()
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	pressed := a.cfg.Libvirt.Shutdown(within, id) // a failure shows in the state below
	for {
		off, err := a.isOff(within, id)
		if off {
			return true, nil
		}
		select {
		case <-within.Done():
			if ctx.Err() != nil {
				return false, ctx.Err()
			}
			if pressed != nil {
				a.cfg.Log.Debug("power button", "domain", id, "err", errors.Join(pressed, err))
			}
			return false, nil
		case <-again.C:
			pressed = a.cfg.Libvirt.Shutdown(within, id)
		case <-look.C:
		}
	}
}

// pullPlug destroys a domain and waits until it is off. None, or off, is success.
func (a *Activities) pullPlug(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, offTimeout)
	defer cancel()
	destroyed := a.cfg.Libvirt.Destroy(ctx, id)
	if errors.Is(destroyed, errs.ErrNotFound) {
		return nil
	}
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		off, err := a.isOff(ctx, id)
		if off {
			return nil
		}
		if destroyed != nil {
			return destroyed
		}
		select {
		case <-ctx.Done():
			return errors.Join(errs.Reason("it is not off yet"), err, ctx.Err())
		case <-look.C:
		}
	}
}

// isOff reports whether a domain is off or not there; an error proves neither.
func (a *Activities) isOff(ctx context.Context, id string) (bool, error) {
	state, _, err := a.cfg.Libvirt.DomainState(ctx, id)
	if errors.Is(err, errs.ErrNotFound) {
		return true, nil
	}
	return err == nil && state == stateOff, err
}

// Remove takes the server's domain away: destroy, wait until off, undefine with all that
// libvirt keeps of it, delete its console's log. None is success; a part that fails does
// not keep the others, except that a running guest is never undefined under itself. A
// domain without our mark is errs.ErrNotManaged, and stays.
func (a *Activities) Remove(ctx context.Context, in RemoveIn) (activities.Nothing, error) {
	if in.Server.UID == "" {
		return activities.Nothing{}, errs.NewPermanent(in.Server.Ref(), "remove domain", errs.Reason("%w: no uid", errs.ErrInvalid), "")
	}
	id := manifest.DomainUUID(in.Server.UID)
	if _, err := a.own(ctx, in.Server, "remove domain"); err != nil && !errors.Is(err, errs.ErrNotFound) {
		return activities.Nothing{}, err
	}
	if err := a.pullPlug(ctx, id); err != nil {
		return activities.Nothing{}, about(in.Server, "destroy domain", err)
	}
	if err := a.cfg.Libvirt.Undefine(ctx, id); err != nil && !errors.Is(err, errs.ErrNotFound) {
		return activities.Nothing{}, about(in.Server, "undefine domain", err)
	}
	for _, log := range consoleLogs(a.cfg.ConsoleDir, in.Server.UID) {
		if err := os.Remove(log); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return activities.Nothing{}, errs.NewTransient(in.Server.Ref(), "delete console log", err)
		}
	}
	return activities.Nothing{}, nil
}
