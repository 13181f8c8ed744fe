package seed_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"burrow.dev/burrow/activities/seed"
	"burrow.dev/burrow/internal/blob"
	"burrow.dev/burrow/internal/bundle"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
)

// bundles has one bundle.
type bundles struct {
	key     string
	content []byte
}

func (b *bundles) Get(_ context.Context, key string) (io.ReadCloser, error) {
	if key != b.key {
		return nil, errs.ErrNotFound
	}
	return io.NopCloser(bytes.NewReader(b.content)), nil
}

// withFolder makes activities whose store has the folder of a playbook, and gives its digest.
func withFolder(t *testing.T, files map[string][]byte) (*seed.Activities, string) {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), content, 0o644))
	}
	var archive bytes.Buffer
	digest, _, err := bundle.Pack(dir, &archive)
	require.NoError(t, err)
	key, err := blob.BundleKey(digest)
	require.NoError(t, err)
	s := &secrets{held: map[string][]byte{}, passwords: passwords{}}
	return seed.New(seed.Config{
		Dir: filepath.Join(t.TempDir(), "seeds"), Secrets: s, Passwords: s.passwords, Bundles: &bundles{key, archive.Bytes()},
	}), digest
}

func TestAPlaybookForTheGuestIsInItsSeedAndBegunThere(t *testing.T) {
	a, digest := withFolder(t, map[string][]byte{"site.yaml": []byte("- hosts: all\n")})
	in := input()
	in.CloudInit = &manifest.CloudInit{UserData: "#cloud-config\nruncmd: [[own]]\n"}
	in.Play = &seed.Play{Ansible: manifest.Ansible{Playbook: []string{"site.yaml"}, RemotePlaybook: true}, Bundle: digest}
	out, err := a.Write(t.Context(), in)
	require.NoError(t, err)
	text := read(t, out.Path)["user-data"]
	require.Contains(t, text, "runcmd: [[own]]")
	for _, name := range []string{"run", "run.conf", "inventory.yaml", "vars.json", "plugins/burrow.py", "content.tar.gz"} {
		require.Contains(t, text, `path: "/var/lib/burrow-play/first-boot/`+name+`"`)
	}
	require.Contains(t, text, `"/var/lib/burrow-play/first-boot/run"`)
	again, err := a.Write(t.Context(), in)
	require.NoError(t, err)
	require.Equal(t, out, again)

	in.Play = &seed.Play{Ansible: manifest.Ansible{Playbook: []string{"local.yml"}, Pull: &manifest.Pull{URL: "https://h.test/a"}}}
	out, err = a.Write(t.Context(), in)
	require.NoError(t, err, "what is pulled needs no bundle")
	require.NotContains(t, read(t, out.Path)["user-data"], "content.tar.gz")
}

func TestAPlaybookThatCannotGoIntoASeedIsRefused(t *testing.T) {
	noise := make([]byte, 700<<10)
	_, err := rand.Read(noise)
	require.NoError(t, err)
	a, digest := withFolder(t, map[string][]byte{"site.yaml": nil, "disk.img": noise})
	remote := manifest.Ansible{Playbook: []string{"site.yaml"}, RemotePlaybook: true}
	secret := remote
	secret.ExtraVars = map[string]any{"a": "secret:planted"}
	for says, play := range map[string]seed.Play{
		"at most 512 go into a guest":                 {Ansible: remote, Bundle: digest},
		"secrets are not given to a run in the guest": {Ansible: secret, Bundle: digest},
		"get its playbook's folder":                   {Ansible: remote, Bundle: "sha256:" + digest[len(digest)-32:] + digest[len(digest)-32:]},
	} {
		in := input()
		in.Play = &play
		_, err := a.Write(t.Context(), in)
		require.Equal(t, errs.Permanent, errs.ClassOf(err), says)
		require.ErrorContains(t, err, says)
		require.NotContains(t, err.Error(), "planted")
	}
}
