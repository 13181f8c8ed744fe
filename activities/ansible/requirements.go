package ansible

import (
	"context"
	"errors"
	"time"

	"burrow.dev/burrow/internal/ansiblex"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/galaxy"
)

// installTimeout bounds one try to install what a requirements file names, with the wait for
// another run that installs the same.
const installTimeout = 10 * time.Minute

var errInstallTime = errors.New("the time to install requirements is over")

// require has a prepared play find what its requirements file names: in its folder, in the
// cache, or installed now. What is wrong with the file is of class refused, then a person
// does next; a server that cannot be reached is Transient.
func (a *Activities) require(ctx context.Context, owner string, user ansiblex.User, p *ansiblex.Prepared, log *ansiblex.Log, refused errs.Class, next string) error {
	needs := p.Needs()
	switch {
	case needs == nil:
		return nil
	case needs.Here:
		log.Printf("requirements %s: all of it is in the playbook's folder", needs.Digest)
		return nil
	}
	install, cancel := context.WithTimeoutCause(ctx, installTimeout, errInstallTime)
	defer cancel()
	err := a.installed(install, user, p, log)
	var e *errs.Error
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case install.Err() != nil:
		err = errs.NewTransient("", "", errs.Reason("it has not ended within %s", installTimeout))
	case errors.Is(err, galaxy.ErrUnsafe):
		err = errs.NewPermanent("", "", err, "")
	}
	const action = "install requirements of the playbook"
	if !errors.As(err, &e) {
		return errs.NewTransient(owner, action, err)
	}
	if e.Class == errs.Permanent {
		return errs.New(refused, owner, action, e.Err, next)
	}
	return errs.New(e.Class, owner, action, e.Err, e.Next)
}

// installed looks into the cache first. Of several runs that need the same, one installs.
func (a *Activities) installed(ctx context.Context, user ansiblex.User, p *ansiblex.Prepared, log *ansiblex.Log) error {
	needs, cache := p.Needs(), galaxy.Cache{Dir: a.o.GalaxyDir, GID: user.GID}
	release, err := a.installing.Lock(ctx, needs.Key)
	if err != nil {
		return err
	}
	defer release()
	if dir, ok := cache.Open(needs.Key); ok {
		log.Printf("requirements %s: installed before", needs.Digest)
		p.Use(dir)
		return nil
	}
	log.Printf("requirements %s: ansible-galaxy installs them", needs.Digest)
	from, err := p.Install(ctx, log)
	if err != nil {
		return err
	}
	dir, err := cache.Publish(needs.Key, from, user.UID)
	if err != nil {
		return err
	}
	p.Use(dir)
	return nil
}
