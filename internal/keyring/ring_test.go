package keyring

import (
	"bytes"
	"encoding/hex"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/sync/errgroup"

	"burrow.dev/burrow/internal/errs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func keyFile(t *testing.T) (path string, key []byte) {
	t.Helper()
	path, key = filepath.Join(t.TempDir(), "master[1].key"), bytes.Repeat([]byte{7}, KeySize)
	require.NoError(t, os.WriteFile(path, key, 0o600))
	return path, key
}

func TestAKeyMustBePrivateAndWhole(t *testing.T) {
	path, _ := keyFile(t)
	open := func() error {
		_, err := Open(t.Context(), Options{File: path})
		return err
	}
	require.NoError(t, open())
	require.NoError(t, os.Chmod(path, 0o640))
	require.ErrorContains(t, open(), "chmod 600")
	require.NoError(t, os.Chmod(path, 0o600))
	require.NoError(t, os.WriteFile(path, []byte("short"), 0o600))
	require.ErrorContains(t, open(), "5 bytes")
	require.NoError(t, os.Remove(path))
	require.Error(t, open())
}

func TestAMadeKeyIsPrivateBesideTheOldOneAndReadByWhoLooksAgain(t *testing.T) {
	path, key := keyFile(t)
	ring, err := Open(t.Context(), Options{File: path})
	require.NoError(t, err)
	other, err := Open(t.Context(), Options{File: path})
	require.NoError(t, err)
	id, place, err := ring.Make(t.Context())
	require.NoError(t, err)
	require.Equal(t, path+"."+id, place)
	require.Equal(t, place, ring.Place(id))
	info, err := os.Stat(place)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	require.Equal(t, ID(key), ring.First(), "the first stays the first")
	require.Len(t, ring.IDs(), 2)
	require.NoError(t, other.Look(t.Context(), ""))
	require.Equal(t, ring.IDs(), other.IDs())
}

func TestFilesBesideAKeyThatAreNoneAreIgnoredAndSaidOnce(t *testing.T) {
	path, key := keyFile(t)
	for name, content := range map[string][]byte{
		".bak":                key,
		".0011223344556677":   key,                   // another key than its name says
		".00112233":           []byte("x"),           // no id
		"." + ID([]byte("x")): []byte("half a copy"), // wrong size
	} {
		require.NoError(t, os.WriteFile(path+name, content, 0o600))
	}
	var said bytes.Buffer
	ring, err := Open(t.Context(), Options{File: path, Log: slog.New(slog.NewTextHandler(&said, nil))})
	require.NoError(t, err)
	require.NoError(t, ring.Reload(t.Context()))
	require.Equal(t, []string{ID(key)}, ring.IDs())
	require.Equal(t, 2, strings.Count(said.String(), "a master key is ignored"), said.String())
}

func TestACommandGivesKeysAndItsOutputIsNeverShown(t *testing.T) {
	one, two := strings.Repeat("0a", KeySize), strings.Repeat("0b", KeySize)
	run := func(script string) (*Ring, error) {
		return Open(t.Context(), Options{Command: []string{"sh", "-c", script}})
	}
	for script, n := range map[string]int{
		"printf %s " + one:                          1,
		"echo " + one:                               1,
		"echo " + one + "; echo " + two:             2,
		"printf '0123456789abcdef0123456789abcdef'": 1, // 32 bytes as they are
		"echo noise >&2; echo " + one:               1,
	} {
		ring, err := run(script)
		require.NoError(t, err, script)
		require.Len(t, ring.IDs(), n, script)
	}
	for script, want := range map[string]string{
		"echo hunter2":                             "not a key",
		"echo " + strings.Repeat("hunter2x", 8):    "not a key",
		"echo hunter2 >&2; exit 3":                 "exit status 3",
		"true":                                     "prints nothing",
		"yes hunter2 | head -c 1000000":            "not a key",
		"echo " + one[:63]:                         "not a key",
		"echo " + one + "; echo hunter2":           "not a key",
		"printf '0123456789abcdef0123456789abcde'": "not a key",
	} {
		_, err := run(script)
		require.ErrorContains(t, err, want, script)
		require.NotContains(t, strings.ReplaceAll(err.Error(), script, ""), "hunter2")
		require.Equal(t, errs.Operator, errs.ClassOf(err))
	}
	_, err := Open(t.Context(), Options{Command: []string{"/nonexistent/kms"}})
	require.ErrorContains(t, err, "check masterKeyCommand")
	_, err = Open(t.Context(), Options{Command: []string{"true"}, File: "x"})
	require.ErrorContains(t, err, "exclude each other")
}

func TestACommandThatHangsIsEndedWithAllThatItStarted(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	open, err := os.OpenFile(pipe, os.O_RDWR, 0)
	require.NoError(t, err)
	ring := newRing(command{[]string{"sh", "-c", "sleep 600 >" + pipe + " & echo started >" + pipe + "; wait"}, 300 * time.Millisecond})
	require.ErrorContains(t, ring.Reload(t.Context()), "it took longer than 300ms")

	reader, err := os.OpenFile(pipe, os.O_RDONLY, 0)
	require.NoError(t, err)
	defer reader.Close()
	require.NoError(t, open.Close())
	require.NoError(t, reader.SetReadDeadline(time.Now().Add(10*time.Second)))
	said, err := io.ReadAll(reader)
	require.NoError(t, err, "its child has the pipe open")
	require.Equal(t, "started\n", string(said))
}

func TestACommandIsAskedAgainOnlyForAKeyThatIsMissing(t *testing.T) {
	dir := t.TempDir()
	script := "echo >> " + dir + "/asked; cat " + dir + "/keys"
	key := bytes.Repeat([]byte{3}, KeySize)
	require.NoError(t, os.WriteFile(dir+"/keys", []byte(hex.EncodeToString(key)), 0o600))
	ring, err := Open(t.Context(), Options{Command: []string{"sh", "-c", script}})
	require.NoError(t, err)
	ring.looked = time.Now().Add(-time.Hour)
	require.NoError(t, ring.Look(t.Context(), ""))
	require.NoError(t, ring.Look(t.Context(), ID(key)))
	asked := func() int {
		content, err := os.ReadFile(dir + "/asked")
		require.NoError(t, err)
		return len(content)
	}
	require.Equal(t, 1, asked())
	require.NoError(t, ring.Look(t.Context(), "0000000000000000"))
	require.Equal(t, 2, asked())
	require.NoError(t, ring.Look(t.Context(), "0000000000000000"))
	require.Equal(t, 2, asked(), "not again at once")
}

func TestACommandIsNotStartedForEachWhoMissesAKey(t *testing.T) {
	dir := t.TempDir()
	good := hex.EncodeToString(bytes.Repeat([]byte{3}, KeySize))
	for name, answer := range map[string]string{"it answers": "echo " + good, "it fails": "exit 3"} {
		t.Run(name, func(t *testing.T) {
			asked := filepath.Join(dir, name)
			ring, err := Open(t.Context(), Options{Command: []string{"echo", good}})
			require.NoError(t, err)
			ring.source = command{[]string{"sh", "-c", "echo >> '" + asked + "'; " + answer}, commandTimeout}
			ring.looked = time.Now().Add(-time.Hour)
			var looking errgroup.Group
			for range 8 {
				looking.Go(func() error { return ring.Look(t.Context(), "0000000000000000") })
			}
			first, again := looking.Wait(), ring.Look(t.Context(), "0000000000000000")
			require.Equal(t, answer == "exit 3", first != nil, "%v", first)
			require.Equal(t, first, again, "who asks a moment later hears the same")
			content, err := os.ReadFile(asked)
			require.NoError(t, err)
			require.Len(t, content, 1)
			require.Len(t, ring.IDs(), 1, "the ring keeps what it has")
		})
	}
}
