package lost

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.temporal.io/api/serviceerror"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/etcdstate"
	"burrow.dev/burrow/manifest"
)

// Store is what the activities need of etcd (internal/etcdstate).
type Store interface {
	DeclareLost(ctx context.Context, host string, mark etcdstate.LostHost) (etcdstate.LostHost, error)
	LostHosts(ctx context.Context) (map[string]etcdstate.LostHost, error)
	IsLost(ctx context.Context, host string) (bool, error)
	Owe(ctx context.Context, d etcdstate.Debt) (bool, error)
	List(ctx context.Context, kind manifest.Kind) ([]manifest.Record, error)
	Reservations(ctx context.Context) ([]etcdstate.Reserved, error)
	ReplaceOnLost(ctx context.Context, host string, rec manifest.Record) (bool, error)
}

// Workflows is what the activities need of Temporal's client.
type Workflows interface {
	SignalWorkflow(ctx context.Context, workflowID, runID, signal string, arg any) error
}

// Activities are the lost.* activities.
type Activities struct {
	store     Store
	workflows Workflows
}

// New builds the activities.
func New(store Store, workflows Workflows) *Activities {
	return &Activities{store: store, workflows: workflows}
}

// Declare marks a host lost.
func (a *Activities) Declare(ctx context.Context, in DeclareIn) (DeclareOut, error) {
	mark, err := a.store.DeclareLost(ctx, in.Host, etcdstate.LostHost{Since: in.At.UTC().Truncate(time.Second), By: in.By})
	return DeclareOut{Since: mark.Since}, err
}

// Ask reports whether a host still is lost.
func (a *Activities) Ask(ctx context.Context, in AskIn) (AskOut, error) {
	is, err := a.store.IsLost(ctx, in.Host)
	return AskOut{Lost: is}, err
}

// Owe writes down what a lost host is to do when it is back.
func (a *Activities) Owe(ctx context.Context, in OweIn) (OweOut, error) {
	uid, err := ownerOf(in.Input)
	if err != nil {
		return OweOut{}, errs.NewPermanent(in.Object, "write down "+in.Activity, err, "report this")
	}
	owed, err := a.store.Owe(ctx, etcdstate.Debt{
		Host: in.Host, Object: in.Object, UID: uid, What: in.What, Activity: in.Activity, Input: in.Input, Since: time.Now().UTC(),
	})
	return OweOut{Owed: owed}, err
}

// ownerOf finds the uid that what an activity removes belongs to; "" where it has none (images).
func ownerOf(input []byte) (string, error) {
	var in struct {
		UID    string            `json:"uid"`
		Server activities.Server `json:"server"`
	}
	err := json.Unmarshal(input, &in)
	return cmp.Or(in.Server.UID, in.UID), err
}

// Tell signals every open operation that may wait for the host: of what is there by its
// record or its reservation, and of images and Playbooks, whose records do not say on which
// host they are being worked on. An operation that is not open yet will learn it from etcd.
func (a *Activities) Tell(ctx context.Context, in TellIn) (TellOut, error) {
	marks, err := a.store.LostHosts(ctx)
	mark, is := marks[in.Host]
	if err != nil || !is {
		return TellOut{}, err // it is back already
	}
	refs, servers, err := a.concerned(ctx, in.Host)
	if err != nil {
		return TellOut{}, err
	}
	var out TellOut
	for _, rec := range servers {
		out.Servers = append(out.Servers, rec.Metadata.Name)
		if err := a.say(ctx, in.Host, mark.Since, rec); err != nil {
			return TellOut{}, err
		}
	}
	for _, ref := range refs {
		err := a.workflows.SignalWorkflow(ctx, ref, "", Signal, HostLost(in))
		var none *serviceerror.NotFound
		switch {
		case errors.As(err, &none):
		case err != nil:
			return TellOut{}, errs.NewTransient(ref, "tell its operation that host "+in.Host+" is lost", err)
		default:
			out.Told = append(out.Told, ref)
		}
	}
	return out, nil
}

// concerned gives the resources whose operation may wait for the host, sorted, and the
// records of the servers there.
func (a *Activities) concerned(ctx context.Context, host string) (refs []string, servers []manifest.Record, err error) {
	reserved, err := a.store.Reservations(ctx)
	if err != nil {
		return nil, nil, err
	}
	for _, r := range reserved {
		if r.Host == host {
			refs = append(refs, r.Owner)
		}
	}
	for _, kind := range []manifest.Kind{manifest.KindServer, manifest.KindVolume, manifest.KindImage, manifest.KindPlaybook} {
		recs, err := a.store.List(ctx, kind)
		if err != nil {
			return nil, nil, err
		}
		for _, rec := range recs {
			anywhere := kind == manifest.KindImage || kind == manifest.KindPlaybook && rec.Status.Operation != nil
			if anywhere || rec.Status.Host == host {
				refs = append(refs, manifest.Ref(kind, rec.Metadata.Name))
			}
			if kind == manifest.KindServer && rec.Status.Host == host {
				servers = append(servers, rec)
			}
		}
	}
	slices.Sort(refs)
	return slices.Compact(refs), servers, nil
}

// say writes into the record of a server that no operation works on what became of its
// host. Losing against another writer is no error: the leader writes the same.
func (a *Activities) say(ctx context.Context, host string, since time.Time, rec manifest.Record) error {
	last := rec.Status.LastPhase()
	if rec.Status.Operation != nil || last != manifest.PhaseRunning && last != manifest.PhaseStopped {
		return nil
	}
	message := Message(host, rec.Metadata.Name, last)
	rec.Status.Lose(since, message)
	rec.Status.Message = message
	_, err := a.store.ReplaceOnLost(ctx, host, rec)
	return err
}

// Message is what the record of a server on a lost host says.
func Message(host, server string, was manifest.Phase) string {
	return fmt.Sprintf("host %s was declared lost; this server was %s, and comes back if the host does. To build it on another host, "+
		"without its data: `burrow delete %s`, then apply it again", host, was, manifest.Ref(manifest.KindServer, server))
}
