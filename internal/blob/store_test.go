package blob

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"burrow.dev/burrow/internal/errs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T) (*Store, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "deep", "blobs")
	s, err := Open(t.Context(), "file://"+dir)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s, dir
}

func bundleKey(t *testing.T, content []byte) string {
	t.Helper()
	sum := sha256.Sum256(content)
	key, err := BundleKey("sha256:" + hex.EncodeToString(sum[:]))
	require.NoError(t, err)
	return key
}

func read(t *testing.T, s *Store, key string) string {
	t.Helper()
	r, err := s.Get(t.Context(), key)
	require.NoError(t, err)
	b, err := io.ReadAll(r)
	require.NoError(t, err)
	require.NoError(t, r.Close())
	return string(b)
}

// files lists every file below dir, temporary ones too.
func files(t *testing.T, dir string) []string {
	t.Helper()
	var found []string
	require.NoError(t, filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			found = append(found, path)
		}
		return err
	}))
	return found
}

func TestWhatWasPutIsReadBackReplacedListedAndDeleted(t *testing.T) {
	s, dir := open(t)
	key := LogKey("uid-1", "run-1")
	require.NoError(t, s.Put(t.Context(), key, strings.NewReader("one")))
	require.NoError(t, s.Put(t.Context(), key, strings.NewReader("two")))
	require.Equal(t, "two", read(t, s, key))

	keys, err := s.List(t.Context(), "logs/")
	require.NoError(t, err)
	require.Equal(t, []string{key}, keys)

	info, err := os.Stat(filepath.Join(dir, key))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	info, err = os.Stat(dir)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())

	require.NoError(t, s.Delete(t.Context(), key))
	require.NoError(t, s.Delete(t.Context(), key), "deleting nothing is success")
	ok, err := s.Exists(t.Context(), key)
	require.NoError(t, err)
	require.False(t, ok)
	_, err = s.Get(t.Context(), key)
	require.ErrorIs(t, err, errs.ErrNotFound)
}

func TestABundleIsStoredOnlyUnderItsOwnDigest(t *testing.T) {
	s, dir := open(t)
	content := bytes.Repeat([]byte("playbook "), 100_000)
	key := bundleKey(t, content)

	err := s.Put(t.Context(), key, bytes.NewReader(content[:len(content)-1]))
	require.ErrorIs(t, err, errs.ErrInvalid)
	require.Equal(t, errs.Permanent, errs.ClassOf(err))
	require.Empty(t, files(t, dir), "a refused bundle leaves nothing behind")

	require.NoError(t, s.Put(t.Context(), key, bytes.NewReader(content)))
	require.Equal(t, string(content), read(t, s, key))
}

func TestAnInterruptedPutLeavesWhatWasThere(t *testing.T) {
	s, dir := open(t)
	key := LogKey("uid", "run")
	require.NoError(t, s.Put(t.Context(), key, strings.NewReader("old")))

	broken := io.MultiReader(strings.NewReader("half"), iotest.ErrReader(errors.New("connection lost")))
	require.ErrorContains(t, s.Put(t.Context(), key, broken), "connection lost")

	ctx, cancel := context.WithCancel(t.Context())
	require.ErrorIs(t, s.Put(ctx, key, cancelling{strings.NewReader("new"), cancel}), context.Canceled)

	require.Equal(t, "old", read(t, s, key))
	require.Len(t, files(t, dir), 1)
}

// cancelling cancels when it has been read to its end.
type cancelling struct {
	io.Reader
	cancel context.CancelFunc
}

func (c cancelling) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	if err != nil {
		c.cancel()
	}
	return n, err
}

func TestABundleDamagedOnDiskIsNoticed(t *testing.T) {
	s, dir := open(t)
	content := []byte("all of it")
	key := bundleKey(t, content)
	require.NoError(t, s.Put(t.Context(), key, bytes.NewReader(content)))
	ok, err := s.Intact(t.Context(), key)
	require.NoError(t, err)
	require.True(t, ok)

	require.NoError(t, os.Truncate(filepath.Join(dir, key), 3))
	r, err := s.Get(t.Context(), key)
	require.NoError(t, err)
	_, err = io.ReadAll(r)
	require.ErrorIs(t, err, errs.ErrInvalid)
	require.NoError(t, r.Close())
	ok, err = s.Intact(t.Context(), key)
	require.NoError(t, err)
	require.False(t, ok)

	require.NoError(t, s.Put(t.Context(), key, bytes.NewReader(content)), "sending it again mends it")
	require.Equal(t, string(content), read(t, s, key))
}

func TestWritersOfOneKeyAtOnceLeaveOneWholeBlob(t *testing.T) {
	s, _ := open(t)
	content := bytes.Repeat([]byte("x"), 1<<20)
	key := bundleKey(t, content)
	var group sync.WaitGroup
	failed := make([]error, 8)
	for i := range failed {
		group.Go(func() { failed[i] = s.Put(t.Context(), key, bytes.NewReader(content)) })
	}
	group.Wait()
	require.NoError(t, errors.Join(failed...))
	require.Equal(t, string(content), read(t, s, key))
}

func TestKeysThatLeaveTheStoreAreRefused(t *testing.T) {
	s, _ := open(t)
	for _, key := range []string{
		"", "/etc/passwd", "../outside", "logs/../../x", "logs//x", "logs/", "./x", "a/\x00", "a\\b", "logs/x.tmp",
		"bundles/short.tar.zst", "bundles/" + strings.Repeat("A", 64) + ".tar.zst",
	} {
		require.ErrorIs(t, s.Put(t.Context(), key, strings.NewReader("")), errs.ErrInvalid, "%q", key)
		_, err := s.Get(t.Context(), key)
		require.ErrorIs(t, err, errs.ErrInvalid, "%q", key)
		require.ErrorIs(t, s.Delete(t.Context(), key), errs.ErrInvalid, "%q", key)
	}
}

func TestDigestsAreReadStrictly(t *testing.T) {
	for _, digest := range []string{"", "sha256:", strings.Repeat("a", 64), "sha512:" + strings.Repeat("a", 64), "sha256:" + strings.Repeat("z", 64)} {
		_, err := BundleKey(digest)
		require.ErrorIs(t, err, errs.ErrInvalid, "%q", digest)
	}
}

func TestOnlyFileURLsAreOpened(t *testing.T) {
	for _, u := range []string{"s3://bucket", "file://relative/path", "/plain/path", "::", "file:relative"} {
		_, err := Open(t.Context(), u)
		require.ErrorIs(t, err, errs.ErrInvalid, u)
	}
}

func TestWhatAKilledWriterLeftIsRemovedAndNothingElse(t *testing.T) {
	s, dir := open(t)
	require.NoError(t, s.Put(t.Context(), "logs/a/b.log", strings.NewReader("kept")))
	old, fresh := filepath.Join(dir, "logs/a/c.log.1f.tmp"), filepath.Join(dir, "logs/a/d.log.2f.tmp")
	for _, path := range []string{old, fresh} {
		require.NoError(t, os.WriteFile(path, []byte("half"), 0o600))
	}
	yesterday := time.Now().Add(-25 * time.Hour)
	require.NoError(t, os.Chtimes(old, yesterday, yesterday))

	again, err := Open(t.Context(), "file://"+dir)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, again.Close()) })
	keys, err := again.List(t.Context(), "")
	require.NoError(t, err)
	require.Equal(t, []string{"logs/a/b.log"}, keys)
	require.NoFileExists(t, old)
	require.FileExists(t, fresh, "its writer may still be at it")
}
