package etcdstate

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"

	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/keyring"
	"burrow.dev/burrow/manifest"
)

// masterKey writes a master key and gives its file.
func masterKey(t *testing.T, fill byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "master.key")
	require.NoError(t, os.WriteFile(path, bytes.Repeat([]byte{fill}, keyring.KeySize), 0o600))
	return path
}

func openRing(t *testing.T, file string) *keyring.Ring {
	t.Helper()
	ring, err := keyring.Open(t.Context(), keyring.Options{File: file, Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	return ring
}

func openSecrets(t *testing.T, store *Store, fill byte) *Secrets {
	t.Helper()
	return OpenSecrets(store, openRing(t, masterKey(t, fill)))
}

func TestSecretsAreNeverInClear(t *testing.T) {
	store := newTestStore(t)
	s := openSecrets(t, store, 1)
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
	s := openSecrets(t, newTestStore(t), 1)
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
	s := openSecrets(t, store, 1)
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

	other := openSecrets(t, store, 2)
	_, err = other.Get(ctx, "a")
	require.ErrorContains(t, err, "master key")
	require.Equal(t, errs.Operator, errs.ClassOf(err))
}

func TestSecretNames(t *testing.T) {
	s := openSecrets(t, newTestStore(t), 1)
	for _, name := range []string{"", "/a", "a/", "../a", "a//b", "a b", "a\n"} {
		require.ErrorIs(t, s.Put(t.Context(), name, nil), errs.ErrInvalid, "%q", name)
	}
	require.NoError(t, s.Put(t.Context(), "db.root-password_1", nil))
}

func TestPeoplesSecretsAreApartFromBurrowsOwn(t *testing.T) {
	s := openSecrets(t, newTestStore(t), 1)
	ctx, users := t.Context(), s.Users()
	require.NoError(t, s.Put(ctx, "server-keys/u1", []byte("private")))

	created, err := users.Set(ctx, "root-pw", []byte("one"), "alice")
	require.NoError(t, err)
	require.True(t, created)
	created, err = users.Set(ctx, "root-pw", []byte("two"), "bob")
	require.NoError(t, err)
	require.False(t, created)
	value, err := users.Get(ctx, "root-pw")
	require.NoError(t, err)
	require.Equal(t, "two", string(value))

	list, err := users.List(ctx)
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.Equal(t, "root-pw", list[0].Name)
	require.Equal(t, "bob", list[0].SetBy)
	require.WithinDuration(t, time.Now(), list[0].SetAt, time.Minute)
	require.Equal(t, s.ring.First(), list[0].MasterKey)
	require.True(t, list[0].Current)

	for _, name := range []string{"server-keys/u1", "../server-keys/u1", "user/x", "", "a/b", "-x", "a\n", strings.Repeat("a", 129)} {
		_, err := users.Set(ctx, name, []byte("x"), "mallory")
		require.ErrorIs(t, err, errs.ErrInvalid, "%q", name)
		_, err = users.Get(ctx, name)
		require.ErrorIs(t, err, errs.ErrInvalid, "%q", name)
		require.ErrorIs(t, users.Remove(ctx, name), errs.ErrInvalid, "%q", name)
	}
	kept, err := s.Get(ctx, "server-keys/u1")
	require.NoError(t, err)
	require.Equal(t, "private", string(kept))

	require.NoError(t, users.Remove(ctx, "root-pw"))
	require.ErrorIs(t, users.Remove(ctx, "root-pw"), errs.ErrNotFound)
	_, err = users.Get(ctx, "root-pw")
	require.EqualError(t, err, "secret root-pw: read: not found; set it: burrow secret set root-pw")
}

func TestSecretsHaveASize(t *testing.T) {
	users := openSecrets(t, newTestStore(t), 1).Users()
	by := strings.Repeat("\x01", 500) // escaped, the longest there is
	_, err := users.Set(t.Context(), strings.Repeat("n", 128), bytes.Repeat([]byte{1}, manifest.MaxSecretBytes), by)
	require.NoError(t, err)
	_, err = users.Set(t.Context(), "x", bytes.Repeat([]byte{1}, manifest.MaxSecretBytes+1), "me")
	require.ErrorContains(t, err, "it is longer than 48128 bytes")
	_, err = users.Set(t.Context(), "x", nil, "me")
	require.ErrorContains(t, err, "it is empty")
}
