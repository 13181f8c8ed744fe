package etcdstate

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"

	"burrow.dev/burrow/internal/errs"
)

func masterKey(t *testing.T, fill byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "master.key")
	require.NoError(t, os.WriteFile(path, bytes.Repeat([]byte{fill}, masterKeySize), 0o600))
	return path
}

func TestSecretsAreNeverInClear(t *testing.T) {
	store := newTestStore(t)
	s, err := OpenSecrets(store, masterKey(t, 1))
	require.NoError(t, err)
	ctx := t.Context()
	clear := []byte("-----BEGIN OPENSSH PRIVATE KEY-----")
	require.NoError(t, s.Put(ctx, "server-keys/u1", clear))
	got, err := s.Get(ctx, "server-keys/u1")
	require.NoError(t, err)
	require.Equal(t, clear, got)
	raw, err := store.client.Get(ctx, store.Key("secrets", "server-keys/u1"))
	require.NoError(t, err)
	require.NotContains(t, string(raw.Kvs[0].Value), "OPENSSH")

	names, err := s.List(ctx)
	require.NoError(t, err)
	require.Equal(t, []string{"server-keys/u1"}, names)
	for range 2 {
		require.NoError(t, s.Delete(ctx, "server-keys/u1"))
	}
	_, err = s.Get(ctx, "server-keys/u1")
	require.ErrorIs(t, err, errs.ErrNotFound)
}

func TestAllOfManyFirstWritersGetTheSameSecret(t *testing.T) {
	s, err := OpenSecrets(newTestStore(t), masterKey(t, 1))
	require.NoError(t, err)
	var mu sync.Mutex
	seen := map[string]bool{}
	var group errgroup.Group
	for n := range 12 {
		group.Go(func() error {
			got, err := s.PutIfAbsent(t.Context(), "k", fmt.Append(nil, n))
			mu.Lock()
			defer mu.Unlock()
			seen[string(got)] = true
			return err
		})
	}
	require.NoError(t, group.Wait())
	require.Len(t, seen, 1)
}

func TestMovedDamagedOrForeignSecretsAreRefusedWithoutTheirContent(t *testing.T) {
	store := newTestStore(t)
	s, err := OpenSecrets(store, masterKey(t, 1))
	require.NoError(t, err)
	ctx := t.Context()
	require.NoError(t, s.Put(ctx, "a", []byte("hidden")))
	raw, err := store.client.Get(ctx, store.Key("secrets", "a"))
	require.NoError(t, err)
	_, err = store.client.Put(ctx, store.Key("secrets", "b"), string(raw.Kvs[0].Value), clientv3.WithLease(0))
	require.NoError(t, err)
	_, err = s.Get(ctx, "b")
	require.ErrorContains(t, err, "moved from another name")
	_, err = store.client.Put(ctx, store.Key("secrets", "c"), "hidden in clear")
	require.NoError(t, err)
	_, err = s.Get(ctx, "c")
	require.Error(t, err)
	require.NotContains(t, err.Error(), "hidden")

	other, err := OpenSecrets(store, masterKey(t, 2))
	require.NoError(t, err)
	_, err = other.Get(ctx, "a")
	require.ErrorContains(t, err, "master key")
	require.Equal(t, errs.Operator, errs.ClassOf(err))
}

func TestSecretNames(t *testing.T) {
	s, err := OpenSecrets(newTestStore(t), masterKey(t, 1))
	require.NoError(t, err)
	for _, name := range []string{"", "/a", "a/", "../a", "a//b", "a b", "a\n"} {
		require.ErrorIs(t, s.Put(t.Context(), name, nil), errs.ErrInvalid, "%q", name)
	}
	require.NoError(t, s.Put(t.Context(), "db.root-password_1", nil))
}

func TestMasterKeyMustBePrivateAndWhole(t *testing.T) {
	path := masterKey(t, 1)
	require.NoError(t, os.Chmod(path, 0o640))
	_, err := OpenSecrets(nil, path)
	require.ErrorContains(t, err, "chmod 600")
	require.NoError(t, os.Chmod(path, 0o600))
	require.NoError(t, os.WriteFile(path, []byte("short"), 0o600))
	_, err = OpenSecrets(nil, path)
	require.ErrorContains(t, err, "5 bytes")
	_, err = OpenSecrets(nil, path+".absent")
	require.Error(t, err)
}
