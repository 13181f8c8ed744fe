package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"burrow.dev/burrow/manifest"
)

// repo is a git repository of somebody else.
type repo struct {
	t   *testing.T
	dir string
}

func newRepo(t *testing.T, files map[string]string) *repo {
	r := &repo{t, t.TempDir()}
	r.git("init", "--quiet", "-b", "main")
	r.commit(files)
	return r
}

func (r *repo) git(args ...string) string {
	r.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = r.dir
	cmd.Env = append(os.Environ(), "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b.test", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b.test", "GIT_CONFIG_GLOBAL=/dev/null")
	out, err := cmd.CombinedOutput()
	require.NoError(r.t, err, string(out))
	return strings.TrimSpace(string(out))
}

// commit adds files and gives the commit.
func (r *repo) commit(files map[string]string) string {
	r.t.Helper()
	for name, text := range files {
		path := filepath.Join(r.dir, name)
		require.NoError(r.t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(r.t, os.WriteFile(path, []byte(text), 0o644))
	}
	r.git("add", "-A")
	r.git("commit", "--quiet", "-m", "x")
	return r.git("rev-parse", "HEAD")
}

func (r *repo) manifest(playbook string) string {
	return "{apiVersion: v1, kind: Server, metadata: {name: db}, spec: {ansible: {playbook: " + playbook + ", source: {url: 'file://" + r.dir + "', ref: main}}}}\n"
}

func TestAPlaybookFromGitIsPackedAtTheCommitThatItWasAt(t *testing.T) {
	files := map[string]string{"deploy/site.yaml": "- hosts: all\n", "deploy/roles/a/tasks/main.yml": "[]\n"}
	r := newRepo(t, files)
	other := "---\n{apiVersion: v1, kind: Playbook, metadata: {name: again}, spec: {playbook: deploy/site.yaml, targets: {servers: [db]}, source: {url: 'file://" + r.dir + "', ref: main}}}\n"
	p, err := planOf(t, r.manifest("deploy/site.yaml")+other)
	require.NoError(t, err)
	require.Len(t, p.checkouts, 1, "both have it from one fetch")
	server, playbook := p.documents[0].Server, p.documents[1].Playbook
	commit := r.git("rev-parse", "HEAD")
	require.Equal(t, []string{"site.yaml"}, server.Spec.Ansible.Playbook)
	require.Equal(t, &manifest.GitSource{URL: "file://" + r.dir, Ref: "main", Commit: commit}, server.Spec.Ansible.Source)
	require.Equal(t, commit, playbook.Spec.Source.Commit)

	local := t.TempDir()
	for name, text := range files {
		path := filepath.Join(local, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	b, err := packFolder(filepath.Join(local, "deploy"))
	require.NoError(t, err)
	defer b.file.Close()
	require.Equal(t, b.digest, server.Bundle, "the bundle is that of the same folder here")

	// A commit that leaves the folder as it was is written down; one that changes it runs.
	records := built(t, p)
	records[0].Status.Bundle = server.Bundle
	rec := record(t, manifest.KindPlaybook, playbook.Metadata, playbook.Spec, manifest.PhaseReady)
	rec.Status.Bundle, rec.Status.Targets = playbook.Bundle, []string{manifest.TargetIdentity(records[0])}
	records[1] = rec
	elsewhere := r.commit(map[string]string{"README": "news"})
	p, err = planOf(t, r.manifest("deploy/site.yaml"), records...)
	require.NoError(t, err)
	require.Equal(t, "another commit with the same folder; written down; nothing else changes", p.changes[0].Effects[0].Text)
	require.Equal(t, elsewhere, p.documents[0].Update.Spec.Ansible.Source.Commit)
	p, err = planOf(t, strings.TrimPrefix(other, "---\n"), records...)
	require.NoError(t, err)
	require.Equal(t, []string{"playbook/again"}, p.unchanged)
	r.commit(map[string]string{"deploy/site.yaml": "- hosts: db\n"})
	p, err = planOf(t, r.manifest("deploy/site.yaml"), records...)
	require.NoError(t, err)
	require.Equal(t, "the playbook runs again", p.changes[0].Effects[0].Text)
	dir := p.checkouts[0].dir
	p.close()
	require.NoDirExists(t, dir)
}

func TestAllFilesOfARunArePackedAndFoundThere(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"play/a.yaml", "play/b.yaml", "play/inv/hosts.yaml", "reqs/requirements.yml"} {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte("- hosts: all\n"), 0o600))
	}
	for _, c := range []struct{ in, want manifest.Ansible }{
		{manifest.Ansible{Playbook: []string{"play/a.yaml", "play/b.yaml"}, Requirements: "reqs/requirements.yml"}, manifest.Ansible{Playbook: []string{"play/a.yaml", "play/b.yaml"}, Requirements: "reqs/requirements.yml"}},
		{manifest.Ansible{Playbook: []string{"play/a.yaml"}, Inventory: "play/inv"}, manifest.Ansible{Playbook: []string{"a.yaml"}, Inventory: "inv"}},
		{manifest.Ansible{Playbook: []string{"play/a.yaml"}, Inventory: "play/inv", Requirements: "reqs/requirements.yml"}, manifest.Ansible{Playbook: []string{"play/a.yaml"}, Inventory: "play/inv", Requirements: "reqs/requirements.yml"}},
	} {
		b, inside, err := packPlaybook(dir, c.in)
		require.NoError(t, err)
		require.NoError(t, b.file.Close())
		require.Equal(t, c.want, inside)
	}
}

func TestWhatIsNotInTheRepositoryOrLeadsOutOfItIsRefused(t *testing.T) {
	r := newRepo(t, map[string]string{"site.yaml": "- hosts: all\n"})
	outside := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(outside, "deep"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(outside, "deep/site.yaml"), []byte("- hosts: all\n"), 0o600))
	require.NoError(t, os.Symlink(outside, filepath.Join(r.dir, "sub")))
	require.NoError(t, os.Symlink(filepath.Join(outside, "deep/site.yaml"), filepath.Join(r.dir, "linked.yaml")))
	r.commit(nil)
	for playbook, want := range map[string]string{
		"nosuch.yaml":        "playbook file nosuch.yaml: find in git repository file://",
		"sub/deep/site.yaml": "escapes",
		"linked.yaml":        "escapes",
	} {
		_, err := planOf(t, r.manifest(playbook))
		require.ErrorContains(t, err, want)
	}
}
