package hostnet

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/test/lab"
)

func TestMain(m *testing.M) { lab.Main(m) }

func namespaceOfThread(t *testing.T) uint64 {
	t.Helper()
	var st unix.Stat_t
	require.NoError(t, unix.Stat("/proc/thread-self/ns/net", &st))
	return st.Ino
}

func TestWorkInsideANamespaceLeavesTheCallersThreadWhereItWas(t *testing.T) {
	require.NoError(t, addNamespace(t.Context(), "inner"))
	require.NoError(t, addNamespace(t.Context(), "inner"), "again")
	t.Cleanup(func() { require.NoError(t, deleteNamespace(context.Background(), "inner")) })
	before := namespaceOfThread(t)
	var within uint64
	for range 50 {
		require.NoError(t, inside("inner", func() error {
			within = namespaceOfThread(t)
			return nil
		}))
		require.NotEqual(t, before, within)
		require.Equal(t, before, namespaceOfThread(t))
	}
	failure := errors.New("failure")
	require.ErrorIs(t, inside("inner", func() error { return failure }), failure)
	err := inside("inner", func() error { panic("oh") })
	require.ErrorContains(t, err, "oh", "a panic is an error")
	require.ErrorIs(t, inside("absent", func() error { return nil }), os.ErrNotExist)
}

func TestANameWithoutANamespaceIsMadeOne(t *testing.T) {
	// What is left when the maker is killed between the file and the mount.
	require.NoError(t, os.MkdirAll(namespaceDir, 0o755))
	require.NoError(t, os.WriteFile(namespacePath("half"), nil, 0o600))
	require.NoError(t, addNamespace(t.Context(), "half"))
	require.True(t, isNamespace("half"))
	require.NoError(t, deleteNamespace(t.Context(), "half"))
	require.NoError(t, deleteNamespace(t.Context(), "half"), "none is success")
}

func TestDialRefusesNamesAndSaysWhichNamespaceIsMissing(t *testing.T) {
	s := New(t.TempDir(), nil)
	_, err := s.Dial(t.Context(), "bw-x", "db:22")
	require.Equal(t, errs.Permanent, errs.ClassOf(err))
	_, err = s.Dial(t.Context(), "bw-x", "10.0.0.1:22")
	require.ErrorIs(t, err, errs.ErrNotFound)
	require.Equal(t, errs.Transient, errs.ClassOf(err))
	require.Contains(t, err.Error(), "bw-x")
}

func TestRemovingWhatIsNotThereIsSuccess(t *testing.T) {
	s := New(t.TempDir(), nil)
	require.NoError(t, s.Remove(t.Context(), "u"))
	require.NoError(t, s.DropNames(t.Context(), "u", "o"))
	require.NoError(t, s.Unguard(t.Context(), "bwdevice"))
	err := s.SetNames(t.Context(), "u", "o", nil)
	require.ErrorIs(t, err, errs.ErrNotFound)
	require.Equal(t, errs.Permanent, errs.ClassOf(s.Remove(t.Context(), "../etc")))
}

func TestAMissingProgramIsTheOperatorsToInstall(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	s := New(t.TempDir(), nil)
	err := s.Ensure(t.Context(), Network{UID: "u", Name: "n", Namespace: "bw-n", MTU: 1500})
	require.Equal(t, errs.Operator, errs.ClassOf(err))
	require.Contains(t, err.Error(), "package iproute2")
}

func TestFirewallsThatDropForwardedPacketsAreNamed(t *testing.T) {
	found, err := ForwardBlockers(t.Context())
	require.NoError(t, err)
	require.Empty(t, found)
	require.NoError(t, nft(t.Context(), "table ip filter { chain FORWARD { type filter hook forward priority 0; policy drop; }; chain INPUT { type filter hook input priority 0; policy drop; }\n}\n"))
	t.Cleanup(func() { require.NoError(t, nft(context.Background(), "delete table ip filter\n")) })
	found, err = ForwardBlockers(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"ip filter FORWARD"}, found)

	require.NoError(t, nft(t.Context(), "table ip filter { chain MINE { iifname \"bwu*\" counter accept; }\n}\n"))
	found, err = ForwardBlockers(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"ip filter FORWARD"}, found, "answers do not come back yet")
	require.NoError(t, nft(t.Context(), "table ip filter { chain MINE { oifname \"bwu*\" counter accept; }\n}\n"))
	found, err = ForwardBlockers(t.Context())
	require.NoError(t, err)
	require.Empty(t, found, "its owner lets us through")
}
