package worker

import (
	"context"

	"golang.org/x/crypto/ssh"

	"burrow.dev/burrow/internal/etcdstate"
	"burrow.dev/burrow/internal/gateway"
	"burrow.dev/burrow/internal/keyring"
	"burrow.dev/burrow/internal/sshkeys"
	"burrow.dev/burrow/manifest"
)

// Records shows the state through the gateway: it is gateway.Records.
type Records struct {
	store     *etcdstate.Store
	summaries *etcdstate.Summaries
}

// NewRecords shows what is in store.
func NewRecords(store *etcdstate.Store) Records {
	return Records{store, etcdstate.NewSummaries(store)}
}

// Get implements gateway.Records.
func (r Records) Get(ctx context.Context, kind manifest.Kind, name string) (manifest.Record, error) {
	return r.store.Get(ctx, kind, name)
}

// Each implements gateway.Records.
func (r Records) Each(ctx context.Context, kind manifest.Kind, fn func(manifest.Record) error) error {
	return r.store.Each(ctx, kind, fn)
}

// EachSummary implements gateway.Records.
func (r Records) EachSummary(ctx context.Context, kind manifest.Kind, fn func([]byte) error) error {
	return r.summaries.Each(ctx, kind, fn)
}

// warm makes the summaries of servers, so that the first who lists them need not wait.
// While etcd is away, that one will.
func (r Records) warm(ctx context.Context) {
	_ = r.summaries.Each(ctx, manifest.KindServer, func([]byte) error { return nil })
}

// Watch implements gateway.Records.
func (r Records) Watch(ctx context.Context, kind manifest.Kind) (<-chan gateway.Event, error) {
	in, err := r.store.Watch(ctx, kind)
	if err != nil {
		return nil, err
	}
	out := make(chan gateway.Event)
	go func() {
		defer close(out)
		for e := range in {
			select {
			case out <- gateway.Event{Type: eventType(e.Type), Record: e.Record}:
			case <-ctx.Done():
				return
			}
		}
	}()
	return out, nil
}

func eventType(t etcdstate.EventType) gateway.EventType {
	switch t {
	case etcdstate.Delete:
		return gateway.Delete
	case etcdstate.Synced:
		return gateway.Synced
	}
	return gateway.Put
}

// secrets shows the gateway what may be done with people's secrets: everything but read them.
type secrets struct{ all *etcdstate.Secrets }

// Set implements gateway.Secrets.
func (s secrets) Set(ctx context.Context, name string, value []byte, by string) (bool, error) {
	return s.all.Users().Set(ctx, name, value, by)
}

// List implements gateway.Secrets.
func (s secrets) List(ctx context.Context) ([]manifest.Secret, error) { return s.all.Users().List(ctx) }

// Remove implements gateway.Secrets.
func (s secrets) Remove(ctx context.Context, name string) error {
	return s.all.Users().Remove(ctx, name)
}

// Rotate implements gateway.Secrets.
func (s secrets) Rotate(ctx context.Context, r keyring.Rotation, say func(keyring.Step)) error {
	return s.all.Rotate(ctx, r, say)
}

// serverKeys gives a server's management key at the moment of use.
type serverKeys struct{ secrets *etcdstate.Secrets }

// Management implements guest.Keys, ansible.Keys and gateway.Keys.
func (k serverKeys) Management(ctx context.Context, serverUID string) (ssh.Signer, error) {
	keys, err := sshkeys.Load(ctx, k.secrets, serverUID)
	if err != nil {
		return nil, err
	}
	return keys.Management, nil
}
