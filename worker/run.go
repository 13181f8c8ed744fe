package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	"golang.org/x/sync/errgroup"

	"burrow.dev/burrow/activities/ansible"
	"burrow.dev/burrow/internal/blob"
	"burrow.dev/burrow/internal/config"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/etcdstate"
	"burrow.dev/burrow/internal/etcdstate/addresses"
	"burrow.dev/burrow/internal/gateway"
	"burrow.dev/burrow/internal/keyring"
	"burrow.dev/burrow/internal/temporalclient"
)

// Roles a worker can have. One process may have both.
const (
	RoleControl = "control"
	RoleHost    = "host"
)

// Options say what a worker process is.
type Options struct {
	Config  config.Worker
	Roles   []string
	Version string
	Log     *slog.Logger
	// Interceptors run inside our own, nearer to each activity and workflow: their errors
	// are classified as an activity's are. None but fault tests need one.
	Interceptors []interceptor.WorkerInterceptor
}

// parts are the drivers that all roles share.
type parts struct {
	Options
	temporal client.Client
	store    *etcdstate.Store
	secrets  *etcdstate.Secrets
	pool     *addresses.Allocator
	blobs    *blob.Store
	keys     serverKeys
}

// connectTimeout bounds the first contact with Temporal; who supervises us tries again.
const connectTimeout = 20 * time.Second

// Run runs the roles and their gateway until ctx ends (nil) or one of them cannot go on.
func Run(ctx context.Context, o Options) error {
	for _, role := range o.Roles {
		if role != RoleControl && role != RoleHost {
			return errs.NewPermanent("burrow worker", "start", errs.Reason("there is no role %q", role), "roles are control and host")
		}
	}
	p, closeParts, err := connect(ctx, o)
	if err != nil {
		return err
	}
	defer closeParts()
	if err := p.awaitWorld(ctx); err != nil {
		return err
	}
	group, running := errgroup.WithContext(ctx)
	group.Go(func() error { return p.store.AwaitRestore(running) })
	state := NewRecords(p.store)
	deps := gateway.Deps{
		Info:    gateway.Info{Version: o.Version, Host: o.Config.Host.Name, Roles: o.Roles, Since: time.Now()},
		Records: state, StateStore: stateStore{p.store, p.secrets}, Blobs: p.blobs, Secrets: secrets{p.secrets}, Addresses: p.pool, Log: o.Log,
	}
	group.Go(func() error { return p.secrets.Announce(running, o.Config.Host.Name) })
	if slices.Contains(o.Roles, RoleHost) {
		h, err := newHost(running, p)
		if err != nil {
			return err
		}
		defer h.close()
		h.serve(&deps)
		group.Go(func() error { return h.run(running) })
	}
	if slices.Contains(o.Roles, RoleControl) {
		group.Go(func() error { return runControl(running, p) })
		group.Go(func() error { state.warm(running); return nil })
	}
	group.Go(func() error { return gateway.NewServer(deps).Serve(running, o.Config.Gateway) })
	if err := group.Wait(); err != nil && ctx.Err() == nil {
		return err
	}
	return nil
}

// connect opens what every role needs.
func connect(ctx context.Context, o Options) (*parts, func(), error) {
	p := &parts{Options: o}
	var closers []func()
	closeAll := func() {
		for _, c := range slices.Backward(closers) {
			c()
		}
	}
	fail := func(err error) (*parts, func(), error) { closeAll(); return nil, nil, err }

	dctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	var err error
	if p.temporal, err = temporalclient.Dial(dctx, o.Config.Temporal, o.Log); err != nil {
		return fail(err)
	}
	closers = append(closers, p.temporal.Close)
	if p.store, err = etcdstate.Open(o.Config.Etcd, etcdstate.Options{Logger: o.Log}); err != nil {
		return fail(err)
	}
	closers = append(closers, func() { _ = p.store.Close() })
	ring, err := keyring.Open(dctx, keyring.Options{File: o.Config.MasterKeyFile, Command: o.Config.MasterKeyCommand, Log: o.Log})
	if err != nil {
		return fail(err)
	}
	p.secrets = etcdstate.OpenSecrets(p.store, ring)
	p.pool = addresses.New(p.store, addresses.Options{})
	closers = append(closers, p.pool.Close)
	if p.blobs, err = blob.Open(ctx, o.Config.Blobs); err != nil {
		return fail(fmt.Errorf("blob store %s: %w", o.Config.Blobs, err))
	}
	closers = append(closers, func() { _ = p.blobs.Close() })
	p.keys = serverKeys{p.secrets}
	return p, closeAll, nil
}

// awaitWorld returns when etcd has told that no restore is under way, and refuses when one
// is, or was interrupted: what is there then is half a world.
func (p *parts) awaitWorld(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		err := p.store.Interrupted(ctx)
		if err == nil || errors.Is(err, errs.ErrBusy) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-tick.C:
		}
	}
}

// ansible makes the playbook activities; without a dialler they can only check.
func (p *parts) ansible(dialer ansible.Dialer, guests ansible.Guests) (*ansible.Activities, error) {
	return ansible.New(ansible.Options{
		RunsDir: p.Config.RunsDir(), GalaxyDir: p.Config.GalaxyDir(), User: config.AnsibleUser, Blobs: p.blobs, Dialer: dialer, Keys: p.keys, Guests: guests, Secrets: p.secrets.Users(), Log: p.Log,
	})
}
