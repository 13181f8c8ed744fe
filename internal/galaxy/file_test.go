package galaxy

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestBothFormsOfAFileAreRead(t *testing.T) {
	roles := `
- geerlingguy.docker
- {name: geerlingguy.nginx, version: 3.2.0}
- {src: https://h.test/ops/ansible-role-db.git, scm: git, version: v1}
- {src: git+ssh://git@h.test/ops/web.git}
- {src: 'https://h.test/files/base.tar.gz'}
- git+https://h.test/ops/one.git,v7,other
- role: old.one
`
	file, err := Parse([]byte(roles))
	require.NoError(t, err)
	names := map[string]bool{}
	for _, e := range file {
		require.Equal(t, Role, e.Kind)
		names[e.Name] = e.Pinned
	}
	require.Equal(t, map[string]bool{
		"geerlingguy.docker": false, "geerlingguy.nginx": true, "ansible-role-db": true, "web": false, "base": true, "other": true, "old.one": false,
	}, names)

	file, err = Parse([]byte(`---
roles: [a.b]
collections:
  - community.general
  - {name: ansible.posix, version: 1.5.4}
  - {name: ansible.utils, version: ">=2.0,<3"}
  - {name: ansible.netcommon, version: ==6.1.0, source: https://galaxy.example.com}
  - {name: 'git+https://h.test/x.git,v1'}
  - {name: 'https://h.test/y.git', type: git, version: main}
  - {name: 'git@h.test:z.git', type: git}
  - {name: 'https://h.test/w-1.0.tar.gz', type: url}
`))
	require.NoError(t, err)
	require.True(t, file.Has(Role))
	require.True(t, file.Has(Collection))
	require.Equal(t, []string{"role a.b", "collection community.general", "collection ansible.utils", "collection git@h.test:z.git"}, file.Unpinned())
	require.Equal(t, "ansible.posix", file[2].Name)
	require.Empty(t, file[5].Name, "only what is fetched says it")

	for _, nothing := range []string{"", "---\n", "[]", "collections: []", "roles:\ncollections:\n"} {
		file, err := Parse([]byte(nothing))
		require.NoError(t, err, nothing)
		require.Empty(t, file)
		require.True(t, file.In(func(Kind, string) bool { return false }))
	}
}

func TestAFileThatIsNoneIsRefusedWithoutQuotingALogin(t *testing.T) {
	for text, says := range map[string]string{
		"roles: 7": "its roles are not a list", "role: []": `it has "role" where only`, "just words": "its roles are not a list",
		"- 7": "role 1 of it is neither", "collections: [{version: 1}]": "collection 1 of it has no name", "- {scm: git}": "role 1 of it has no name",
		"a: [": "not YAML", "a: &x [b]\nroles: *x": "anchors and aliases",
		"- src: https://u:hunter2@h.test/x":                          "has a login in a URL",
		"- src: git+https://hunter2@h.test/x":                        "has a login in a URL",
		"- src: \"https:\\/\\/hunter2@h.test\\/x\"":                  "has a login in a URL",
		"collections: [{name: 'ssh://git:hunter2@h.test/x'}]":        "has a login in a URL",
		"collections: [{name: a.b, source: 'https://hunter2@h/v3'}]": "has a login in a URL",
	} {
		_, err := Parse([]byte(text))
		require.ErrorContains(t, err, says, text)
		require.NotContains(t, err.Error(), "hunter2")
	}
	_, err := Parse(make([]byte, MaxBytes+1))
	require.ErrorContains(t, err, "larger than 64 KiB")
}

func TestAFileThatLeadsIntoTheFolderIsToldFromOneThatDoesNot(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "here.too"), 0o755))
	folder, err := os.OpenRoot(dir)
	require.NoError(t, err)
	defer folder.Close()
	for text, local := range map[string]bool{
		"[a.b, 'git+https://h/x', 'git@h.test:x', 'file:///srv/x.tar.gz']":          false,
		"collections: [{name: a.b, source: 'https://h/'}, {name: 'git+file:///x'}]": false,
		"collections: [{name: a.b, source: my_server}]":                             false,
		"[here.too]":                              true,
		"collections: [here.too]":                 true,
		"collections: [{name: a.b, source: ./x}]": true,
		"[./roles/x.tar.gz]":                      true,
		"[x/y]":                                   true,
		"[/srv/x.tar.gz]":                         true,
		"[{src: ../x, scm: git}]":                 true,
		"[{include: other.yml}]":                  true,
		"collections: [{name: x, type: dir}]":     true,
	} {
		file, err := Parse([]byte(text))
		require.NoError(t, err)
		require.Equal(t, local, file.Local(folder), text)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("- {src: 'git+https://h/x,v1', version: 1}\n"))
	f.Add([]byte("collections: [{name: a.b, version: [1]}]\nroles: [a, {role: b}]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := Parse(data)
		if err != nil {
			return
		}
		file.Unpinned()
		for _, e := range file {
			require.NotEmpty(t, e.Shown)
			for _, s := range e.sources {
				require.NotRegexp(t, `https?://[^/\s]*@`, s)
			}
		}
	})
}
