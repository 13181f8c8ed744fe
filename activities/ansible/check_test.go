package ansible

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
)

// checkSite needs no guest: a check reaches nothing.
func checkSite(t *testing.T) *site {
	s := &site{t: t, blobs: blobs{t.TempDir()}, dir: runsDir(t), set: secretsSet{}}
	s.a = s.activities()
	s.before = goleak.IgnoreCurrent()
	return s
}

func TestCheckFindsWhatCannotRun(t *testing.T) {
	s := checkSite(t)
	cases := map[string]struct {
		files map[string]string
		says  string // empty: nothing is wrong
	}{
		"a good one":        {userFiles("- hosts: db\n  roles: [say]\n  vars_prompt: [{name: x}]\n"), ""},
		"syntax":            {map[string]string{"site.yaml": "- hosts: db\n  tusks: []\n"}, "'tusks' is not a valid attribute for a Play"},
		"a missing role":    {map[string]string{"site.yaml": "- hosts: db\n  roles: [nosuch]\n"}, "the role 'nosuch' was not found"},
		"a missing file":    {map[string]string{"site.yaml": "- import_playbook: nosuch.yaml\n"}, "nosuch.yaml"},
		"an unknown module": {map[string]string{"site.yaml": "- hosts: db\n  tasks: [{nosuch.thing: }]\n"}, "couldn't resolve module/action 'nosuch.thing'"},
		"no inventory":      {map[string]string{"site.yaml": "- hosts: db\n", "hosts.yaml": "- no\n- inventory\n"}, "hosts.yaml"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			spec := manifest.Ansible{Playbook: []string{"site.yaml"}}
			if c.files["hosts.yaml"] != "" {
				spec.Inventory = "hosts.yaml"
			}
			_, err := s.a.Check(t.Context(), CheckIn{Owner: "server/db", Bundle: s.bundle(c.files), Ansible: spec})
			if c.says == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, "server/db: check playbook: Ansible refuses it: ")
				require.ErrorContains(t, err, c.says)
				require.NotContains(t, err.Error(), s.dir)
				require.Equal(t, errs.Permanent, errs.ClassOf(err))
			}
			s.nothingLeft()
		})
	}
}

func TestCheckNamesFilesThatAreNotInTheFolder(t *testing.T) {
	s := checkSite(t)
	digest := s.bundle(map[string]string{"site.yaml": "- hosts: db\n"})
	for _, spec := range []manifest.Ansible{
		{Playbook: []string{"other.yaml"}},
		{Playbook: []string{"site.yaml"}, Inventory: "hosts.yaml"},
		{Playbook: []string{"../../../etc/passwd"}},
		{Playbook: []string{"/etc/passwd"}},
		{Playbook: []string{"-vvvv"}},
		{},
	} {
		_, err := s.a.Check(t.Context(), CheckIn{Owner: "server/db", Bundle: digest, Ansible: spec})
		require.ErrorContains(t, err, "server/db: prepare playbook: playbook")
		require.Equal(t, errs.Permanent, errs.ClassOf(err))
	}
}

func TestTheCasesOfTheGuideAreValid(t *testing.T) {
	s := checkSite(t)
	for _, dir := range []string{"../../examples/quickstart/playbook"} {
		files := map[string]string{}
		require.NoError(t, filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			text, err := os.ReadFile(p)
			rel, _ := filepath.Rel(dir, p)
			files[rel] = string(text)
			return err
		}))
		_, err := s.a.Check(t.Context(), CheckIn{
			Owner: "server/db", Bundle: s.bundle(files),
			Ansible: manifest.Ansible{Playbook: []string{"mysql-setup.yaml"}, Inventory: "hosts.yaml"},
		})
		require.NoError(t, err)
	}
}

func TestAHostileBundleIsRefused(t *testing.T) {
	s := checkSite(t)
	digest := s.store([]byte("this is no archive"))
	_, err := s.a.Check(t.Context(), CheckIn{Owner: "server/db", Bundle: digest, Ansible: manifest.Ansible{Playbook: []string{"x"}}})
	require.Equal(t, errs.Permanent, errs.ClassOf(err))
	require.ErrorContains(t, err, "bundle: unpack")
	s.nothingLeft()
}

func TestAMissingAccountIsForTheOperator(t *testing.T) {
	a, err := New(Options{RunsDir: runsDir(t), GalaxyDir: t.TempDir(), User: "nosuchuser", Blobs: blobs{}})
	require.NoError(t, err)
	_, err = a.Check(t.Context(), CheckIn{Owner: "server/db"})
	require.Equal(t, errs.Operator, errs.ClassOf(err))
	require.ErrorContains(t, err, "useradd --system")
}

func TestAFolderThatTheAccountMayNotPassIsSaid(t *testing.T) {
	s := checkSite(t)
	require.NoError(t, os.Chmod(s.dir, 0o700))
	_, err := s.a.Check(t.Context(), CheckIn{Owner: "server/db", Bundle: s.store(nil)})
	require.Equal(t, errs.Operator, errs.ClassOf(err))
	require.ErrorContains(t, err, "chmod o+x "+s.dir)
}
