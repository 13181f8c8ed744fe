package worker

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"burrow.dev/burrow/internal/etcdstate"
	"burrow.dev/burrow/internal/keyring"
)

func TestTheWorkerTellsHowEtcdIsAndWhoLeads(t *testing.T) {
	s := newSite(t)
	key := make([]byte, keyring.KeySize)
	file := filepath.Join(t.TempDir(), "master.key")
	require.NoError(t, os.WriteFile(file, key, 0o600))
	ring, err := keyring.Open(t.Context(), keyring.Options{File: file})
	require.NoError(t, err)
	r := stateStore{s.store, etcdstate.OpenSecrets(s.store, ring)}
	found, err := r.StateStore(t.Context())
	require.NoError(t, err)
	require.Len(t, found.Members, 1)
	require.True(t, found.Members[0].Leader)
	require.Positive(t, found.Members[0].Size)
	require.Empty(t, found.Leader)
	s.lead()
	require.Eventually(t, func() bool {
		found, err = r.StateStore(t.Context())
		return err == nil && found.Leader == "test"
	}, patience, 5*time.Millisecond)
	require.Equal(t, ring.IDs()[0], found.MasterKey)
	require.Empty(t, found.WithoutMasterKey)
}

func TestAWorkerWithoutTheMasterKeyInUseIsTold(t *testing.T) {
	s := newSite(t)
	open := func(fill byte) *etcdstate.Secrets {
		file := filepath.Join(t.TempDir(), "master.key")
		require.NoError(t, os.WriteFile(file, bytes.Repeat([]byte{fill}, keyring.KeySize), 0o600))
		ring, err := keyring.Open(t.Context(), keyring.Options{File: file})
		require.NoError(t, err)
		return etcdstate.OpenSecrets(s.store, ring)
	}
	right, wrong := open(1), open(2)
	require.NoError(t, right.Put(t.Context(), "server-keys/x", []byte("v")))
	ctx, stop := context.WithCancel(t.Context())
	announced := make(chan error, 1)
	go func() { announced <- wrong.Announce(ctx, "kvm2") }()
	require.Eventually(t, func() bool {
		found, err := stateStore{s.store, right}.StateStore(t.Context())
		return err == nil && slices.Equal(found.WithoutMasterKey, []string{"kvm2"}) && found.MasterKey != ""
	}, patience, 5*time.Millisecond)
	stop()
	require.NoError(t, <-announced)
}
