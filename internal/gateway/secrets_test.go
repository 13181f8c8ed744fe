package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"burrow.dev/burrow/internal/config"
	"burrow.dev/burrow/internal/devstacktest"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/etcdstate"
	"burrow.dev/burrow/internal/keyring"
	"burrow.dev/burrow/manifest"
)

// vault is Secrets over a real etcd, as a worker wires it.
type vault struct {
	etcdstate.UserSecrets
	all *etcdstate.Secrets
}

func (v vault) Rotate(ctx context.Context, r keyring.Rotation, say func(keyring.Step)) error {
	return v.all.Rotate(ctx, r, say)
}

func newVault(t *testing.T) vault {
	t.Helper()
	state, err := etcdstate.Open(config.Etcd{Endpoints: []string{devstacktest.Etcd(t)}}, etcdstate.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, state.Close()) })
	file := filepath.Join(t.TempDir(), "master.key")
	require.NoError(t, os.WriteFile(file, bytes.Repeat([]byte{1}, keyring.KeySize), 0o600))
	ring, err := keyring.Open(t.Context(), keyring.Options{File: file})
	require.NoError(t, err)
	all := etcdstate.OpenSecrets(state, ring)
	return vault{all.Users(), all}
}

// lines is a log that may be read while it is written to.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func TestSecretsAreSetListedAndRemovedAndNeverGiven(t *testing.T) {
	v := newVault(t)
	ctx := t.Context()
	require.NoError(t, v.all.Put(ctx, "server-keys/u1", []byte("private")))
	var log lines
	d := deps(t, &store{})
	d.Secrets, d.Log = v, slog.New(slog.NewTextHandler(&log, nil))
	c := connect(t, serve(t, d))

	created, err := c.SetSecret(ctx, "root", []byte("hunter2"), "alice")
	require.NoError(t, err)
	require.True(t, created)
	created, err = c.SetSecret(ctx, "root", []byte("hunter2 again"), "bob")
	require.NoError(t, err)
	require.False(t, created)
	list, err := c.ListSecrets(ctx)
	require.NoError(t, err)
	require.Len(t, list, 1, "burrow's own are not among them")
	require.Equal(t, "bob", list[0].SetBy)
	require.True(t, list[0].Current)
	value, err := v.Get(ctx, "root")
	require.NoError(t, err)
	require.Equal(t, "hunter2 again", string(value))

	for _, name := range []string{"server-keys/u1", "user/root", "../server-keys/u1"} {
		_, err := c.SetSecret(ctx, name, []byte("hunter2"), "mallory")
		require.ErrorIs(t, err, errs.ErrInvalid, name)
		require.ErrorIs(t, c.RemoveSecret(ctx, name), errs.ErrInvalid, name)
	}
	_, err = c.SetSecret(ctx, "root", nil, "alice")
	require.ErrorContains(t, err, "it is empty")
	_, err = c.SetSecret(ctx, "root", bytes.Repeat([]byte("hunter2"), 8000), "alice")
	require.ErrorContains(t, err, "it is longer than 48128 bytes")
	require.NoError(t, c.RemoveSecret(ctx, "root"))
	require.ErrorIs(t, c.RemoveSecret(ctx, "root"), errs.ErrNotFound)
	require.Contains(t, log.String(), "a secret was set")
	require.NotContains(t, log.String(), "hunter2")
}

func TestASecretThatServersNameIsNotRemoved(t *testing.T) {
	v := newVault(t)
	records := &store{}
	for i, name := range []string{"a", "b", "c", "d", "e", "f", "g"} {
		rec := server(name)
		rec.Spec = json.RawMessage(`{"auth":{"rootPassword":"secret:root"}}`)
		if i == 6 {
			rec.Spec = json.RawMessage(`{"auth":{"rootPassword":"secret:root2"}}`)
		}
		records.records = append(records.records, rec)
	}
	d := deps(t, records)
	d.Secrets = v
	c := connect(t, serve(t, d))
	_, err := c.SetSecret(t.Context(), "root", []byte("x"), "alice")
	require.NoError(t, err)
	err = c.RemoveSecret(t.Context(), "root")
	require.ErrorContains(t, err, "it is used by server/a, server/b, server/c, server/d, server/e and 1 more")
	require.Equal(t, errs.Permanent, errs.ClassOf(err))
	records.mu.Lock()
	records.records = records.records[6:]
	records.mu.Unlock()
	require.NoError(t, c.RemoveSecret(t.Context(), "root"))
}

func TestASecretThatPlaybooksNameIsNotRemoved(t *testing.T) {
	v := newVault(t)
	inServer, document := server("a"), server("p")
	inServer.Spec = json.RawMessage(`{"auth":{},"ansible":{"extraVars":{"x":[{"y":"secret:token"}]}}}`)
	document.Kind, document.Spec = manifest.KindPlaybook, json.RawMessage(`{"vaultPassword":"secret:vault","becomePassword":"secret:token"}`)
	d := deps(t, &store{records: []manifest.Record{inServer, document}})
	d.Secrets = v
	c := connect(t, serve(t, d))
	for _, name := range []string{"token", "vault"} {
		_, err := c.SetSecret(t.Context(), name, []byte("x"), "alice")
		require.NoError(t, err)
	}
	require.ErrorContains(t, c.RemoveSecret(t.Context(), "token"), "it is used by server/a, playbook/p")
	require.ErrorContains(t, c.RemoveSecret(t.Context(), "vault"), "it is used by playbook/p")
}

func TestARotationSaysHowFarItIs(t *testing.T) {
	v := newVault(t)
	d := deps(t, &store{})
	d.Secrets = v
	c := connect(t, serve(t, d))
	_, err := c.SetSecret(t.Context(), "root", []byte("x"), "alice")
	require.NoError(t, err)
	var phases []string
	var last keyring.Step
	require.NoError(t, c.RotateKey(t.Context(), keyring.Rotation{By: "alice"}, func(s keyring.Step) {
		phases = append(phases, string(s.Phase))
		last = s
	}))
	require.Equal(t, "chosen switched encrypts done", strings.Join(phases, " "))
	require.Equal(t, 1, last.Done)
	list, err := c.ListSecrets(t.Context())
	require.NoError(t, err)
	require.Equal(t, last.KeyID, list[0].MasterKey)
	require.FileExists(t, last.Place)
	require.Equal(t, manifest.Secret{Name: "root", SetAt: list[0].SetAt, SetBy: "alice", MasterKey: last.KeyID, Current: true}, list[0])
}
