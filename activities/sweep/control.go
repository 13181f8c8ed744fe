package sweep

import (
	"context"
	"errors"
	"slices"
	"time"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/internal/addrspace"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/etcdstate"
	"burrow.dev/burrow/internal/etcdstate/addresses"
	"burrow.dev/burrow/internal/temporalclient"
	"burrow.dev/burrow/manifest"
)

// Store is what the control side needs of etcd (internal/etcdstate).
type Store interface {
	Records
	Get(ctx context.Context, kind manifest.Kind, name string) (manifest.Record, error)
	Update(ctx context.Context, kind manifest.Kind, name string, change func(*manifest.Record) error) (manifest.Record, error)
	AliveHosts(ctx context.Context) ([]string, error)
	Placement(ctx context.Context, uid string) (string, error)
	AllReferences(ctx context.Context) ([]etcdstate.Reference, error)
	DropReference(ctx context.Context, networkUID, host, owner string) (int, error)
	Reservations(ctx context.Context) ([]etcdstate.Reserved, error)
	Unreserve(ctx context.Context, uid string) error
	Owners(ctx context.Context, folder string) (map[string]string, error)
	Disown(ctx context.Context, folder, owner string, names ...string) error
	Claims(ctx context.Context) ([]etcdstate.Claimed, error)
	DropClaim(ctx context.Context, c etcdstate.Claimed) error
	ForgetDeleted(ctx context.Context, now time.Time) error
	LostNames(ctx context.Context) ([]string, error)
	Owing(ctx context.Context) (map[string]string, error)
	Sight(ctx context.Context, change func(etcdstate.Sightings) etcdstate.Sightings) (etcdstate.Sightings, error)
}

// Pools is what the control side needs of the address pools.
type Pools interface {
	EachOwner(ctx context.Context, fn func(addresses.Owned) error) error
	Networks(ctx context.Context) ([]addrspace.Entry, error)
	Release(ctx context.Context, networkUID string, ownerPrefixes ...string) error
	Forget(ctx context.Context, uid string) error
}

// Secrets is what the control side needs of the secret store. Values are not read.
type Secrets interface {
	List(ctx context.Context) ([]string, error)
	Delete(ctx context.Context, name string) error
}

// Control is the part of the activities that looks at etcd and at Temporal.
type Control struct {
	store     Store
	pools     Pools
	secrets   Secrets
	workflows temporalclient.Describer
}

// NewControl makes the control side.
func NewControl(store Store, pools Pools, secrets Secrets, workflows temporalclient.Describer) *Control {
	return &Control{store: store, pools: pools, secrets: secrets, workflows: workflows}
}

// Unfinished lists the records whose operation ended without finishing. A record is read,
// then Temporal is asked, then the record is read again: an operation that ends in between
// has settled it, and one that begins has written itself into it.
func (a *Control) Unfinished(ctx context.Context, _ UnfinishedIn) (UnfinishedOut, error) {
	var out UnfinishedOut
	if err := a.hosts(ctx, &out); err != nil {
		return out, err
	}
	for _, kind := range ownerKinds {
		recs, err := a.store.List(ctx, kind)
		if err != nil {
			return out, err
		}
		for _, rec := range recs {
			lost, err := a.lost(ctx, rec)
			if err != nil {
				return out, err
			}
			if !lost {
				continue
			}
			if len(out.Records) == UnfinishedMost {
				out.More++
				continue
			}
			u, err := a.unfinished(ctx, rec)
			if err != nil {
				return out, err
			}
			out.Records = append(out.Records, u)
		}
	}
	return out, nil
}

func (a *Control) hosts(ctx context.Context, out *UnfinishedOut) error {
	alive, err := a.store.AliveHosts(ctx)
	if err != nil {
		return err
	}
	hosts, err := a.store.List(ctx, manifest.KindHost)
	if err != nil {
		return err
	}
	out.Alive = alive
	for _, h := range hosts {
		if !slices.Contains(alive, h.Metadata.Name) {
			out.Away = append(out.Away, h.Metadata.Name)
		}
	}
	out.Lost, err = a.store.LostNames(ctx)
	return err
}

// lost reports whether nobody works on an unsettled record any more.
func (a *Control) lost(ctx context.Context, rec manifest.Record) (bool, error) {
	if rec.Status.Phase.Settled() {
		return false, nil
	}
	open, err := a.open(ctx, manifest.Ref(rec.Kind, rec.Metadata.Name))
	if err != nil || open {
		return false, err
	}
	now, err := a.store.Get(ctx, rec.Kind, rec.Metadata.Name)
	if errors.Is(err, errs.ErrNotFound) {
		return false, nil
	}
	return err == nil && now.Metadata.ResourceVersion == rec.Metadata.ResourceVersion, err
}

func (a *Control) unfinished(ctx context.Context, rec manifest.Record) (Unfinished, error) {
	u := Unfinished{
		Kind: rec.Kind, Name: rec.Metadata.Name, UID: rec.Metadata.UID, Phase: rec.Status.Phase, Host: rec.Status.Host,
	}
	if rec.Status.Operation != nil {
		u.Was = *rec.Status.Operation
	}
	if u.Host != "" {
		return u, nil
	}
	var err error
	u.Host, err = a.store.Placement(ctx, u.UID)
	return u, err
}

// open reports whether an operation works on a resource, or is about to. What is about to
// start one is looked for first: it ends when that one is open.
func (a *Control) open(ctx context.Context, ref string) (bool, error) {
	for _, id := range []string{ref + activities.NextSuffix, ref} {
		open, err := a.openWorkflow(ctx, id)
		if err != nil || open {
			return open, err
		}
	}
	return false, nil
}

func (a *Control) openWorkflow(ctx context.Context, id string) (bool, error) {
	run, err := temporalclient.OpenRun(ctx, a.workflows, id)
	if err != nil {
		return false, errs.NewTransient(id, "look for its operation", err)
	}
	return run != "", nil
}
