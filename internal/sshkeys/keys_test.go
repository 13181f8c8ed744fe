package sshkeys_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"
	"golang.org/x/sync/errgroup"

	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/sshkeys"
)

// memory is a secret store with the semantics that etcd's has.
type memory struct {
	mu   sync.Mutex
	held map[string][]byte
}

func newMemory() *memory { return &memory{held: map[string][]byte{}} }

func (m *memory) Get(_ context.Context, name string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if v, ok := m.held[name]; ok {
		return v, nil
	}
	return nil, errs.ErrNotFound
}

func (m *memory) PutIfAbsent(_ context.Context, name string, value []byte) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if v, ok := m.held[name]; ok {
		return v, nil
	}
	m.held[name] = value
	return value, nil
}

func (m *memory) Delete(_ context.Context, name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.held, name)
	return nil
}

func TestCallersThatRaceGetTheSameKeys(t *testing.T) {
	store := newMemory()
	var lines sync.Map
	g, ctx := errgroup.WithContext(t.Context())
	for range 8 {
		g.Go(func() error {
			keys, err := sshkeys.Ensure(ctx, store, "u1")
			if err == nil {
				lines.Store(keys.HostKeyLine()+keys.ManagementLine(), true)
			}
			return err
		})
	}
	require.NoError(t, g.Wait())
	n := 0
	lines.Range(func(any, any) bool { n++; return true })
	require.Equal(t, 1, n)
}

func TestKeysAreTwoEd25519KeysAndTheirLinesParse(t *testing.T) {
	store := newMemory()
	keys, err := sshkeys.Ensure(t.Context(), store, "u1")
	require.NoError(t, err)
	require.Equal(t, ssh.KeyAlgoED25519, keys.Host.PublicKey().Type())
	require.NotEqual(t, keys.Host.PublicKey().Marshal(), keys.Management.PublicKey().Marshal())
	public, _, _, _, err := ssh.ParseAuthorizedKey([]byte(keys.ManagementLine()))
	require.NoError(t, err)
	require.Equal(t, keys.Management.PublicKey().Marshal(), public.Marshal())
	host, err := ssh.ParsePrivateKey(keys.HostPEM)
	require.NoError(t, err)
	require.Equal(t, keys.HostKeyLine(), strings.TrimSpace(string(ssh.MarshalAuthorizedKey(host.PublicKey()))))

	loaded, err := sshkeys.Load(t.Context(), store, "u1")
	require.NoError(t, err)
	require.Equal(t, keys.HostKeyLine(), loaded.HostKeyLine())
}

func TestDeletingTwiceIsSuccessAndLoadingAfterwardsFindsNothing(t *testing.T) {
	store := newMemory()
	_, err := sshkeys.Ensure(t.Context(), store, "u1")
	require.NoError(t, err)
	require.NoError(t, sshkeys.Delete(t.Context(), store, "u1"))
	require.NoError(t, sshkeys.Delete(t.Context(), store, "u1"))
	_, err = sshkeys.Load(t.Context(), store, "u1")
	require.ErrorIs(t, err, errs.ErrNotFound)
}

func TestADamagedSecretIsNotQuoted(t *testing.T) {
	store := newMemory()
	_, _ = store.PutIfAbsent(t.Context(), sshkeys.SecretName("u1"), []byte("hunter2"))
	_, err := sshkeys.Load(t.Context(), store, "u1")
	require.ErrorIs(t, err, errs.ErrInvalid)
	require.NotContains(t, err.Error(), "hunter2")
}
