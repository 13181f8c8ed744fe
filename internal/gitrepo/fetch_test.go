package gitrepo

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
)

// repository makes one with site.yaml, and gives its folder and the first commit.
func repository(t *testing.T) (dir, commit string) {
	t.Helper()
	dir = t.TempDir()
	in(t, dir, "git", "init", "--quiet", "-b", "main")
	return dir, save(t, dir, "site.yaml", "- hosts: all\n")
}

func in(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b.test", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b.test", "GIT_CONFIG_GLOBAL=/dev/null")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	return strings.TrimSpace(string(out))
}

func save(t *testing.T, dir, name, text string) string {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	in(t, dir, "git", "add", "-A")
	in(t, dir, "git", "commit", "--quiet", "-m", "x")
	return in(t, dir, "git", "rev-parse", "HEAD")
}

func TestABranchATagOrACommitIsFetched(t *testing.T) {
	dir, first := repository(t)
	in(t, dir, "git", "tag", "v1")
	second := save(t, dir, "site.yaml", "- hosts: db\n")
	for ref, want := range map[string]string{"": second, "main": second, "v1": first, "refs/heads/main": second, first: first} {
		to := t.TempDir()
		commit, err := Fetch(t.Context(), manifest.GitSource{URL: "file://" + dir, Ref: ref}, to)
		require.NoError(t, err, ref)
		require.Equal(t, want, commit, ref)
		require.FileExists(t, filepath.Join(to, "site.yaml"))
	}
}

func TestWhatIsNotThereIsSaidWithGitsWords(t *testing.T) {
	dir, _ := repository(t)
	_, err := Fetch(t.Context(), manifest.GitSource{URL: "file://" + dir, Ref: "nosuch"}, t.TempDir())
	require.Equal(t, errs.Permanent, errs.ClassOf(err))
	require.ErrorContains(t, err, "git repository file://"+dir+" nosuch: fetch: couldn't find remote ref nosuch; see that its url and ref")
	_, err = Fetch(t.Context(), manifest.GitSource{URL: "file:///nosuch/at/all"}, t.TempDir())
	require.ErrorContains(t, err, "does not appear to be a git repository")
}

func TestHostileURLsAndRefsNeverReachGit(t *testing.T) {
	t.Setenv("PATH", t.TempDir()) // there is no git
	for _, s := range []manifest.GitSource{
		{URL: "ext::sh -c touch% /tmp/x"},
		{URL: "--upload-pack=touch /tmp/x"},
		{URL: "fd::17"},
		{URL: "http://h.test/x"},
		{URL: "ssh://-oProxyCommand=x/y"},
		{URL: "git@-oProxyCommand=x:y"},
		{URL: "git@h.test:-x"},
		{URL: "/srv/git/x"},
		{URL: "https://u:hunter2@h.test/x"},
		{URL: "https://token@h.test/x"},
		{URL: "file://elsewhere/x"},
		{URL: "https://h.test/x?t=hunter2"},
		{URL: "file:///x", Ref: "--output=/tmp/x"},
		{URL: "file:///x", Ref: "+main:main"},
		{URL: "file:///x", Ref: "a..b"},
	} {
		_, err := Fetch(t.Context(), s, t.TempDir())
		require.Error(t, err)
		require.NotContains(t, err.Error(), "install git", s.URL+s.Ref)
		require.NotContains(t, err.Error(), "hunter2")
	}
}

// fetchWith is a fetch with other bounds.
func fetchWith(t *testing.T, url string, most bounds) error {
	t.Helper()
	program, err := exec.LookPath("git")
	require.NoError(t, err)
	g := &git{program: program, dir: t.TempDir(), protocol: "file", out: io.Discard, most: most}
	_, err = g.fetch(t.Context(), url, "HEAD")
	return err
}

func TestARepositoryThatIsTooLargeIsRefused(t *testing.T) {
	dir, _ := repository(t)
	noise := make([]byte, 300_000)
	_, _ = rand.Read(noise)
	save(t, dir, "noise", string(noise))
	url := "file://" + dir
	require.NoError(t, fetchWith(t, url, bounds{pack: 400_000, bytes: 300_013, entries: 2}))
	for says, most := range map[string]bounds{
		"it sends more than":    {pack: 200_000, bytes: 1 << 20, entries: 10},
		"the commit has more t": {pack: 1 << 20, bytes: 300_012, entries: 10},
		"more than 1 files":     {pack: 1 << 20, bytes: 1 << 20, entries: 1},
	} {
		err := fetchWith(t, url, most)
		require.ErrorIs(t, err, errTooLarge)
		require.ErrorContains(t, err, says)
	}
}

func TestAFewKilobytesThatStandForBillionsOfFilesAreRefused(t *testing.T) {
	dir, _ := repository(t)
	entry, kind := in(t, dir, "git", "rev-parse", "HEAD:site.yaml"), "100644 blob "
	for range 10 {
		var tree strings.Builder
		for _, name := range "0123456789" {
			fmt.Fprintf(&tree, "%s%s\t%c\n", kind, entry, name)
		}
		cmd := exec.Command("git", "mktree")
		cmd.Dir, cmd.Stdin = dir, strings.NewReader(tree.String())
		out, err := cmd.Output()
		require.NoError(t, err)
		entry, kind = strings.TrimSpace(string(out)), "040000 tree "
	}
	commit := in(t, dir, "git", "commit-tree", "-m", "x", entry)
	in(t, dir, "git", "update-ref", "refs/heads/bomb", commit)
	_, err := Fetch(t.Context(), manifest.GitSource{URL: "file://" + dir, Ref: "bomb"}, t.TempDir())
	require.ErrorContains(t, err, "fetch: too large: the commit has more than 100000 files")
	require.ErrorContains(t, err, "name a repository that has the playbook and little else")
}

func TestFilesComeAsTheyAreInTheRepositoryAndWithoutGitsOwn(t *testing.T) {
	dir, _ := repository(t)
	save(t, dir, ".gitattributes", "*.txt text eol=crlf\n*.yaml ident\n*.u16 working-tree-encoding=UTF-16\n")
	save(t, dir, "a.txt", "one\ntwo\n")
	save(t, dir, "id.yaml", "# $Id$\n")
	in(t, dir, "git", "config", "core.autocrlf", "true")
	global := filepath.Join(t.TempDir(), "gitconfig")
	require.NoError(t, os.WriteFile(global, []byte("[core]\n\tautocrlf = true\n"), 0o600))
	t.Setenv("GIT_CONFIG_GLOBAL", global)
	to := t.TempDir()
	_, err := Fetch(t.Context(), manifest.GitSource{URL: "file://" + dir}, to)
	require.NoError(t, err)
	for name, want := range map[string]string{"a.txt": "one\ntwo\n", "id.yaml": "# $Id$\n", "site.yaml": "- hosts: all\n"} {
		text, err := os.ReadFile(filepath.Join(to, name))
		require.NoError(t, err)
		require.Equal(t, want, string(text), name)
	}
	require.NoDirExists(t, filepath.Join(to, ".git"), "its configuration may have a login in it")
}

func TestNothingOfARepositoryIsRun(t *testing.T) {
	dir, _ := repository(t)
	mark := filepath.Join(t.TempDir(), "ran")
	hook := "#!/bin/sh\ntouch " + mark + "\n"
	save(t, dir, ".gitattributes", "site.yaml filter=evil\n")
	// A user's own configuration may have hooks and filters; a foreign repository does not get them.
	home := t.TempDir()
	hooks := filepath.Join(home, "hooks")
	require.NoError(t, os.MkdirAll(hooks, 0o755))
	for _, name := range []string{"post-checkout", "reference-transaction"} {
		require.NoError(t, os.WriteFile(filepath.Join(hooks, name), []byte(hook), 0o755))
	}
	global := filepath.Join(home, "gitconfig")
	require.NoError(t, os.WriteFile(global, []byte("[core]\n\thooksPath = "+hooks+"\n[submodule]\n\trecurse = true\n[filter \"evil\"]\n\tsmudge = touch "+mark+"; cat\n\trequired = true\n"), 0o644))
	t.Setenv("GIT_CONFIG_GLOBAL", global)
	other, _ := repository(t)
	in(t, dir, "git", "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", "file://"+other, "sub")
	in(t, dir, "git", "commit", "--quiet", "-m", "sub")
	// As in one of git's hooks.
	t.Setenv("GIT_DIR", filepath.Join(home, "elsewhere"))
	to := t.TempDir()
	_, err := Fetch(t.Context(), manifest.GitSource{URL: "file://" + dir}, to)
	require.NoError(t, err)
	require.NoFileExists(t, mark)
	require.NoFileExists(t, filepath.Join(to, "sub", "site.yaml"))
	require.NoDirExists(t, filepath.Join(home, "elsewhere"))
}

func TestALoginInGitsOwnConfigurationIsNotQuoted(t *testing.T) {
	for _, login := range []string{"u:hunter2@", "hunter2@", "u:hunt@er2@"} {
		require.Equal(t, "unable to access 'https://h.test/x/': no", said("fatal: unable to access 'https://"+login+"h.test/x/': no\n"))
	}
	// As continuous integration has it: a token in a setting of the user's.
	global := filepath.Join(t.TempDir(), "gitconfig")
	require.NoError(t, os.WriteFile(global, []byte("[url \"https://u:hunter2@127.0.0.1:1/\"]\n\tinsteadOf = https://h.test/\n"), 0o600))
	t.Setenv("GIT_CONFIG_GLOBAL", global)
	_, err := Fetch(t.Context(), manifest.GitSource{URL: "https://h.test/x"}, t.TempDir())
	require.ErrorContains(t, err, "git repository https://h.test/x: fetch: unable to access 'https://127.0.0.1:1/x/'")
	require.NotContains(t, err.Error(), "hunter2")
}

func TestWhatGitSaysIsBoundedHoweverItIsCopied(t *testing.T) {
	w := &words{}
	n, err := io.Copy(w, io.LimitReader(rand.Reader, 4*maxOutput))
	require.NoError(t, err)
	require.EqualValues(t, 4*maxOutput, n)
	require.Equal(t, maxOutput, w.kept.Len())
}

func TestACancelledFetchEnds(t *testing.T) {
	dir, _ := repository(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Fetch(ctx, manifest.GitSource{URL: "file://" + dir}, t.TempDir())
	require.ErrorIs(t, err, context.Canceled)
}

func TestASymlinkOutOfARepositoryIsNotFollowed(t *testing.T) {
	dir := t.TempDir()
	outside := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(outside, "deep"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(outside, "deep", "site.yaml"), nil, 0o644))
	require.NoError(t, os.Symlink(outside, filepath.Join(dir, "sub")))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "site.yaml"), nil, 0o644))
	require.NoError(t, Inside(dir, "site.yaml"))
	require.Error(t, Inside(dir, "sub/deep/site.yaml"))
	require.Error(t, Inside(dir, "nosuch.yaml"))
}
