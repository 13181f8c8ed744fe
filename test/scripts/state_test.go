package scripts

import (
	"bytes"
	"context"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"burrow.dev/burrow/internal/addrspace"
	"burrow.dev/burrow/internal/config"
	"burrow.dev/burrow/internal/devstacktest"
	"burrow.dev/burrow/internal/etcdstate"
	"burrow.dev/burrow/internal/etcdstate/addresses"
	"burrow.dev/burrow/internal/gateway"
	"burrow.dev/burrow/internal/keyring"
	"burrow.dev/burrow/manifest"
)

// vault is the gateway's Secrets as a worker wires them.
type vault struct {
	etcdstate.UserSecrets
	all *etcdstate.Secrets
}

// Rotate implements gateway.Secrets.
func (v vault) Rotate(ctx context.Context, r keyring.Rotation, say func(keyring.Step)) error {
	return v.all.Rotate(ctx, r, say)
}

// keepState gives a script that has a file named etcd a real one, with secrets and the
// address pools of its network records; 10.0.0.2 there is that of the server db.
func keepState(t *testing.T, env *testscript.Env, records folder, deps *gateway.Deps) error {
	work := env.Getenv("WORK")
	if _, err := os.Stat(filepath.Join(work, "etcd")); err != nil {
		return nil
	}
	store, err := etcdstate.Open(config.Etcd{Endpoints: []string{devstacktest.Etcd(t)}}, etcdstate.Options{})
	if err != nil {
		return err
	}
	file := filepath.Join(work, "master.key")
	if err := os.WriteFile(file, bytes.Repeat([]byte{1}, keyring.KeySize), 0o600); err != nil {
		return err
	}
	ring, err := keyring.Open(t.Context(), keyring.Options{File: file})
	if err != nil {
		return err
	}
	all := etcdstate.OpenSecrets(store, ring)
	pool := addresses.New(store, addresses.Options{})
	env.Defer(func() {
		pool.Close()
		_ = store.Close()
	})
	deps.Secrets, deps.Addresses = vault{all.Users(), all}, pool
	networks, err := records.List(t.Context(), manifest.KindNetwork)
	if err != nil {
		return err
	}
	for _, rec := range networks {
		if _, err := pool.Settle(t.Context(), rec.Metadata.UID, rec.Metadata.Name, func([]addrspace.Entry) (manifest.NetworkStatus, error) {
			return *rec.Status.Network, nil
		}); err != nil {
			return err
		}
		if _, err := pool.Allocate(t.Context(), rec.Metadata.UID, []addrspace.Want{{Owner: "0b9d/" + rec.Metadata.Name + "-0/0", Static: netip.MustParseAddr("10.0.0.2")}}); err != nil {
			return err
		}
	}
	return nil
}
