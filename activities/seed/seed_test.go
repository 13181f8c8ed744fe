package seed_test

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/go-crypt/crypt/algorithm/shacrypt"
	"github.com/kdomanski/iso9660"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/activities/seed"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
)

const uid = "0b6c2a34-7d8e-4f00-9a11-2b3c4d5e6f70"

// secrets is a secret store in memory.
type secrets struct {
	mu        sync.Mutex
	held      map[string][]byte
	passwords passwords
}

// passwords are the secrets that people set.
type passwords map[string][]byte

func (p passwords) Get(_ context.Context, name string) ([]byte, error) {
	if v, ok := p[name]; ok {
		return v, nil
	}
	return nil, errs.ErrNotFound
}

func (m *secrets) Get(_ context.Context, name string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if v, ok := m.held[name]; ok {
		return v, nil
	}
	return nil, errs.ErrNotFound
}

func (m *secrets) PutIfAbsent(_ context.Context, name string, value []byte) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if v, ok := m.held[name]; ok {
		return v, nil
	}
	m.held[name] = value
	return value, nil
}

func (m *secrets) Delete(_ context.Context, name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.held, name)
	return nil
}

func setup(t *testing.T) (*seed.Activities, *secrets, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "seeds")
	s := &secrets{held: map[string][]byte{}, passwords: passwords{}}
	return seed.New(seed.Config{Dir: dir, Secrets: s, Passwords: s.passwords}), s, dir
}

func input() seed.WriteIn {
	return seed.WriteIn{
		Server: activities.Server{Name: "db", UID: uid}, Hostname: "db", Login: "debian",
		Keys: []string{"ssh-ed25519 AAAA1 alice"}, Ports: []manifest.Port{{MAC: "52:54:00:00:00:01", Addresses: []string{"10.0.0.2/24"}, MTU: 1500}},
	}
}

// read gives the files of a seed by name.
func read(t *testing.T, path string) map[string]string {
	t.Helper()
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	image, err := iso9660.OpenImage(f)
	require.NoError(t, err)
	root, err := image.RootDir()
	require.NoError(t, err)
	files, err := root.GetChildren()
	require.NoError(t, err)
	got := map[string]string{}
	for _, f := range files {
		text, err := io.ReadAll(f.Reader())
		require.NoError(t, err)
		got[f.Name()] = string(text)
	}
	return got
}

func TestASeedHoldsKeysForTheLoginAndIsReadableByRootOnly(t *testing.T) {
	a, _, dir := setup(t)
	out, err := a.Write(t.Context(), input())
	require.NoError(t, err)
	require.Equal(t, "debian", out.Login)
	require.Len(t, out.HostKeys, 1)
	require.Regexp(t, `^`+dir+`/`+uid+`-[0-9a-f]{12}\.iso$`, out.Path)
	info, err := os.Stat(out.Path)
	require.NoError(t, err)
	require.EqualValues(t, 0o600, info.Mode().Perm())

	files := read(t, out.Path)
	require.Contains(t, files["user-data"], "AAAA1 alice")
	require.Contains(t, files["user-data"], " burrow\"", "the management key")
	require.Contains(t, files["user-data"], out.HostKeys[0])
	require.Contains(t, files["meta-data"], uid+"-0")
}

func TestWritingTwiceOrSideBySideGivesOneFile(t *testing.T) {
	a, _, dir := setup(t)
	g, ctx := errgroup.WithContext(t.Context())
	for range 8 {
		g.Go(func() error { _, err := a.Write(ctx, input()); return err })
	}
	require.NoError(t, g.Wait())
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1)
}

func TestWhatAKilledWriteLeftIsRemovedByTheNext(t *testing.T) {
	a, _, dir := setup(t)
	out, err := a.Write(t.Context(), input())
	require.NoError(t, err)
	for _, whole := range []bool{true, false} {
		if !whole {
			require.NoError(t, os.Remove(out.Path))
		}
		half := filepath.Join(dir, "."+filepath.Base(out.Path)+".part-1")
		require.NoError(t, os.WriteFile(half, []byte("half"), 0o600))
		_, err = a.Write(t.Context(), input())
		require.NoError(t, err)
		require.NoFileExists(t, half)
		require.FileExists(t, out.Path)
	}
}

func TestOtherContentIsAnotherFileWithTheSameInstanceAndKeys(t *testing.T) {
	a, _, _ := setup(t)
	first, err := a.Write(t.Context(), input())
	require.NoError(t, err)
	edited := input()
	edited.CloudInit = &manifest.CloudInit{UserData: "#!/bin/sh\necho hi\n"}
	second, err := a.Write(t.Context(), edited)
	require.NoError(t, err)
	require.NotEqual(t, first.Path, second.Path)
	require.Equal(t, first.HostKeys, second.HostKeys)
	require.Equal(t, read(t, first.Path)["meta-data"], read(t, second.Path)["meta-data"], "pitfall 38: an edit is not a new instance")

	rebuilt := input()
	rebuilt.Rebuild = 1
	third, err := a.Write(t.Context(), rebuilt)
	require.NoError(t, err)
	require.Contains(t, read(t, third.Path)["meta-data"], uid+"-1")
	require.Equal(t, first.HostKeys, third.HostKeys, "pitfall 42: a rebuild keeps the host key")
}

func TestRemoveTakesOwnSeedsOnlyAndTwiceIsSuccess(t *testing.T) {
	a, s, dir := setup(t)
	out, err := a.Write(t.Context(), input())
	require.NoError(t, err)
	other := filepath.Join(dir, "11111111-7d8e-4f00-9a11-2b3c4d5e6f70-000000000000.iso")
	half := filepath.Join(dir, "."+filepath.Base(out.Path)+".part-1")
	for _, f := range []string{other, half} {
		require.NoError(t, os.WriteFile(f, []byte("x"), 0o600))
	}
	for range 2 {
		_, err = a.Remove(t.Context(), seed.RemoveIn{Server: input().Server})
		require.NoError(t, err)
	}
	require.NoFileExists(t, out.Path)
	require.NoFileExists(t, half)
	require.FileExists(t, other)
	require.Len(t, s.held, 1, "keys stay until asked")
	_, err = a.Remove(t.Context(), seed.RemoveIn{Server: input().Server, Secrets: true})
	require.NoError(t, err)
	require.Empty(t, s.held)
}

func TestRemovingWhereNothingWasWrittenIsSuccess(t *testing.T) {
	a, _, _ := setup(t)
	_, err := a.Remove(t.Context(), seed.RemoveIn{Server: input().Server, Secrets: true})
	require.NoError(t, err)
}

func TestDeclaredUsersReplaceTheImagesLogin(t *testing.T) {
	a, _, _ := setup(t)
	in := input()
	in.Auth.Users = []string{"alice", "bob"}
	out, err := a.Write(t.Context(), in)
	require.NoError(t, err)
	require.Equal(t, "alice", out.Login)
	text := read(t, out.Path)["user-data"]
	require.Equal(t, 2, strings.Count(text, " burrow\""), "every login user takes the management key")
	require.NotContains(t, text, "debian")
}

func TestTheRootPasswordComesFromASecret(t *testing.T) {
	a, s, _ := setup(t)
	in := input()
	in.Auth.RootPassword = "secret:root"
	_, err := a.Write(t.Context(), in)
	require.ErrorIs(t, err, errs.ErrNotFound)
	require.Equal(t, errs.Permanent, errs.ClassOf(err))
	require.ErrorContains(t, err, "read root password: not found: there is no secret root; burrow secret set root, then apply again")

	s.passwords["root"] = []byte("$6$saltsalt$hash\n")
	out, err := a.Write(t.Context(), in)
	require.NoError(t, err)
	require.Contains(t, read(t, out.Path)["user-data"], `password: "$6$saltsalt$hash"`)
}

func TestAClearTextSecretIsHashedTheSameWayEachTime(t *testing.T) {
	a, s, _ := setup(t)
	in := input()
	in.Auth.RootPassword = "secret:root"
	s.passwords["root"] = []byte("correct horse\n")
	first, err := a.Write(t.Context(), in)
	require.NoError(t, err)
	again, err := a.Write(t.Context(), in)
	require.NoError(t, err)
	require.Equal(t, first.Path, again.Path, "a retried activity writes the same seed")
	text := read(t, first.Path)["user-data"]
	require.NotContains(t, text, "correct horse")
	hash := regexp.MustCompile(`\$6\$[^"]+`).FindString(text)
	digest, err := shacrypt.Decode(hash)
	require.NoError(t, err)
	require.True(t, digest.Match("correct horse"))
}

func TestASecretThatIsNoPasswordIsRefusedUnseen(t *testing.T) {
	a, s, _ := setup(t)
	in := input()
	in.Auth.RootPassword = "secret:root"
	for _, value := range []string{" \n", "hunter2\nhunter2", "hunter2\x00", "$9$hunter2hunter2"} {
		s.passwords["root"] = []byte(value)
		_, err := a.Write(t.Context(), in)
		require.ErrorContains(t, err, "burrow secret set root")
		require.Equal(t, errs.Permanent, errs.ClassOf(err))
		require.NotContains(t, err.Error(), "hunter2")
	}
}

func TestAUIDThatIsAPathIsRefused(t *testing.T) {
	a, _, _ := setup(t)
	in := input()
	in.Server.UID = "../../etc/x"
	_, err := a.Write(t.Context(), in)
	require.ErrorIs(t, err, errs.ErrInvalid)
	_, err = a.Remove(t.Context(), seed.RemoveIn{Server: in.Server})
	require.ErrorIs(t, err, errs.ErrInvalid)
}

func TestPruneLeavesTheNamedSeedAndTheKeys(t *testing.T) {
	a, store, dir := setup(t)
	old, err := a.Write(t.Context(), input())
	require.NoError(t, err)
	in := input()
	in.Rebuild = 1
	fresh, err := a.Write(t.Context(), in)
	require.NoError(t, err)
	require.FileExists(t, old.Path, "a rebuild may have to go back to it")
	_, err = a.Prune(t.Context(), seed.PruneIn{Server: in.Server, Keep: filepath.Join(dir, "of-another.iso")})
	require.ErrorIs(t, err, errs.ErrInvalid)
	_, err = a.Prune(t.Context(), seed.PruneIn{Server: in.Server, Keep: fresh.Path})
	require.NoError(t, err)
	require.NoFileExists(t, old.Path)
	require.FileExists(t, fresh.Path)
	require.NotEmpty(t, store.held)
}

func TestASeedOfOtherNICsIsElseTheSame(t *testing.T) {
	a, _, dir := setup(t)
	out, err := a.Write(t.Context(), input())
	require.NoError(t, err)
	was := read(t, out.Path)
	in := seed.ReaddressIn{Server: input().Server, Seed: out.Path, Ports: append(input().Ports, manifest.Port{Index: 1, MAC: "52:54:00:00:00:02", Addresses: []string{"10.1.0.2/24"}, MTU: 1500})}
	other, err := a.Readdress(t.Context(), in)
	require.NoError(t, err)
	again, err := a.Readdress(t.Context(), in)
	require.NoError(t, err)
	require.Equal(t, other, again)
	require.NotEqual(t, out.Path, other.Path)
	require.FileExists(t, out.Path, "the guest may still have it")
	now := read(t, other.Path)
	require.Contains(t, now["network-config"], "52:54:00:00:00:02")
	require.Equal(t, was["user-data"], now["user-data"])
	require.Equal(t, was["meta-data"], now["meta-data"], "cloud-init must not take it for a new server")

	in.Ports = input().Ports
	back, err := a.Readdress(t.Context(), in)
	require.NoError(t, err)
	require.Equal(t, out.Path, back.Path, "the same content is the same file")

	in.Seed = filepath.Join(dir, uid+"-000000000000.iso")
	_, err = a.Readdress(t.Context(), in)
	require.ErrorIs(t, err, errs.ErrNotFound)
	require.ErrorContains(t, err, "burrow rebuild db")
	in.Seed = "/etc/passwd"
	_, err = a.Readdress(t.Context(), in)
	require.ErrorIs(t, err, errs.ErrInvalid)
}
