package ansiblex

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/galaxy/galaxytest"
)

// needing prepares a run of files with a requirements file, and gives its log.
func needing(t *testing.T, requirements string, more map[string]string) (*Prepared, *Log) {
	t.Helper()
	runs, err := os.MkdirTemp("/tmp", "bw") // short, for socket paths
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(runs) })
	require.NoError(t, os.Chmod(runs, 0o711))
	user, err := CheckUser()
	require.NoError(t, err)
	now := time.Now()
	f, err := MakeFolder(runs, user, Record{ID: NewRunID(now), Owner: "server/db", CreatedAt: now})
	require.NoError(t, err)
	files := map[string]string{"site.yaml": "- hosts: all\n", "requirements.yml": requirements}
	for name, text := range more {
		files[name] = text
	}
	for name, text := range files {
		path := filepath.Join(f.Bundle(), name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	p, err := f.Prepare(Play{Playbooks: []string{"site.yaml"}, Requirements: "requirements.yml", Bundle: "sha256:00", SyntaxCheck: true})
	require.NoError(t, err)
	log, err := f.OpenLog()
	require.NoError(t, err)
	t.Cleanup(func() { _ = log.Close() })
	return p, log
}

func owner(t *testing.T) int {
	t.Helper()
	user, err := CheckUser()
	require.NoError(t, err)
	return user.UID
}

func TestRolesAndCollectionsAreInstalledByTheRunsUser(t *testing.T) {
	t.Setenv("BURROW_TEST_SECRET", "planted-in-the-environment")
	hub, role := galaxytest.NewHub(t), galaxytest.RoleRepository(t, owner(t))
	p, log := needing(t, "roles: [{src: 'git+file://"+role+"', version: v1, name: greet}]\n"+
		"collections: [{name: burrow.test, version: 1.0.0, source: '"+hub.URL+"/api/'}]\n", nil)
	var environment []byte
	hub.Hold = func(*http.Request) {
		pids, err := markedProcesses(p.folder.ID)
		require.NoError(t, err)
		for _, pid := range pids {
			env, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "environ"))
			environment = append(environment, env...)
		}
	}
	dir, err := p.Install(t.Context(), log)
	require.NoError(t, err)
	require.FileExists(t, filepath.Join(dir, "roles/greet/tasks/main.yml"))
	require.FileExists(t, filepath.Join(dir, "collections/ansible_collections/burrow/test/plugins/filter/hail.py"))
	require.Contains(t, string(environment), "GIT_TERMINAL_PROMPT=0", "it was looked at")
	require.NotContains(t, string(environment), "planted")
	info, err := os.Stat(dir)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm(), "no other run may enter any more")
}

func TestWhatCannotBeInstalledIsToldFromWhatCannotBeReached(t *testing.T) {
	hub, role, dead := galaxytest.NewHub(t), galaxytest.RoleRepository(t, owner(t)), galaxytest.NobodyListens(t)
	cases := map[string]struct {
		requirements string
		class        errs.Class
		says         []string
	}{
		"a role whose version is not there":      {"[{src: 'git+file://" + role + "', version: v9, name: greet}]", errs.Permanent, []string{"greet was NOT installed", "pathspec 'v9' did not match"}},
		"a role whose repository is not there":   {"[{src: 'git+file:///nosuch', version: v1, name: greet}]", errs.Permanent, []string{"greet was NOT installed", "does not appear to be a git repository"}},
		"a role whose server is not there":       {"[{src: 'git+https://" + dead + "/x', version: v1, name: greet}]", errs.Transient, []string{"cannot be reached", "greet was NOT installed"}},
		"a role's archive that is not there":     {"[{src: 'http://" + dead + "/x.tar.gz', name: greet}]", errs.Transient, []string{"cannot be reached", "greet was NOT installed"}},
		"a file that is no role's archive":       {"[{src: ./site.yaml, name: greet}]", errs.Permanent, []string{"greet was NOT installed"}},
		"a collection that is not there":         {"collections: [{name: burrow.nosuch, version: 1.0.0, source: '" + hub.URL + "/api/'}]", errs.Permanent, []string{"burrow.nosuch"}},
		"a collection's version not there":       {"collections: [{name: burrow.test, version: 9.9.9, source: '" + hub.URL + "/api/'}]", errs.Permanent, []string{"burrow.test:9.9.9"}},
		"a collection whose server is not there": {"collections: [{name: burrow.test, version: 1.0.0, source: 'http://" + dead + "/api/'}]", errs.Transient, []string{"cannot be reached", "Connection refused"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p, log := needing(t, c.requirements, nil)
			_, err := p.Install(t.Context(), log)
			require.Error(t, err)
			require.Equal(t, c.class, errs.ClassOf(err), err.Error())
			for _, s := range c.says {
				require.ErrorContains(t, err, s)
			}
			require.NotContains(t, err.Error(), p.folder.Dir)
			require.NotContains(t, err.Error(), "--ignore-errors")
		})
	}
}

func TestACancelledInstallLeavesNoProcess(t *testing.T) {
	hub := galaxytest.NewHub(t)
	p, log := needing(t, "collections: [{name: burrow.test, version: 1.0.0, source: '"+hub.URL+"/api/'}]\n", nil)
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan struct{})
	hub.Hold = func(r *http.Request) {
		cancel()
		<-r.Context().Done() // until the client is dead
		close(gone)
	}
	_, err := p.Install(ctx, log)
	require.ErrorIs(t, err, context.Canceled)
	<-gone
	left, err := markedProcesses(p.folder.ID)
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestWhatTheFolderHasIsNotFetched(t *testing.T) {
	const requirements = "roles: [{name: greet, version: v1}]\ncollections: [{name: burrow.test, version: 1.0.0}]\n"
	role, collection := "roles/greet/tasks/main.yml", "collections/ansible_collections/burrow/test/plugins/x.py"
	for name, c := range map[string]struct {
		files map[string]string
		here  bool
	}{
		"both beside the playbook":     {map[string]string{role: "", collection: ""}, true},
		"on paths of its ansible.cfg":  {map[string]string{"ansible.cfg": "[defaults]\nroles_path = a:b\ncollections_path = c\n", "b/greet/x": "", "c/ansible_collections/burrow/test/x": ""}, true},
		"the role alone":               {map[string]string{role: ""}, false},
		"nothing":                      {nil, false},
		"below where Ansible looks":    {map[string]string{"deep/" + role: "", collection: ""}, false},
		"a file in place of the role":  {map[string]string{"roles/greet": "", collection: ""}, false},
		"a path that leads outside it": {map[string]string{"ansible.cfg": "[defaults]\nroles_path = ../../../../usr\n", collection: ""}, false},
	} {
		p, _ := needing(t, requirements, c.files)
		require.Equal(t, c.here, p.Needs().Here, name)
	}
}

func TestTheKeyOfACacheIsOfAllThatDecides(t *testing.T) {
	keyOf := func(requirements, bundle string, more map[string]string) string {
		p, _ := needing(t, requirements, more)
		root, err := os.OpenRoot(p.folder.Bundle())
		require.NoError(t, err)
		defer root.Close()
		play := p.play
		play.Bundle = bundle
		n, err := ReadNeeds(root, play)
		require.NoError(t, err)
		return n.Key
	}
	remote := "[{src: 'git+https://h.test/x', version: v1}]"
	key := keyOf(remote, "sha256:01", nil)
	require.Equal(t, key, keyOf(remote, "sha256:02", map[string]string{"more": "x"}), "of any folder")
	require.NotEqual(t, key, keyOf(remote+"\n", "sha256:01", nil))
	require.NotEqual(t, key, keyOf(remote, "sha256:01", map[string]string{"ansible.cfg": "[galaxy]\nserver = https://other.test/\n"}), "it may name servers")
	local := "[{src: ./role.tar.gz}]"
	require.NotEqual(t, keyOf(local, "sha256:01", nil), keyOf(local, "sha256:02", nil), "somebody else's file has the same name")
}

func TestARequirementsFileOfABundleMayBeAnything(t *testing.T) {
	for text, says := range map[string]string{"7": "not a list", "- src: https://u:hunter2@h.test/x": "has a login"} {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, "r.yml"), []byte(text), 0o600))
		root, err := os.OpenRoot(dir)
		require.NoError(t, err)
		_, err = ReadNeeds(root, Play{Playbooks: []string{"site.yaml"}, Requirements: "r.yml"})
		require.ErrorContains(t, err, "requirements file r.yml: read: it")
		require.ErrorContains(t, err, says)
		require.NotContains(t, err.Error(), "hunter2")
		require.Equal(t, errs.Permanent, errs.ClassOf(err))
		_, err = ReadNeeds(root, Play{Playbooks: []string{"site.yaml"}, Requirements: "../../etc/passwd"})
		require.ErrorContains(t, err, "not a file of the playbook's folder")
		require.NoError(t, root.Close())
	}
}

func TestWhatIsInstalledIsFoundAfterTheUsersOwnAndBeforeTheMachines(t *testing.T) {
	f := &Folder{ID: "run-1", Dir: "/r", user: User{Name: "u"}}
	env := strings.Join(f.environment("", configuration{}, "/g/k"), "\n") + "\n"
	require.Contains(t, env, "ANSIBLE_ROLES_PATH=/g/k/roles:/usr/share/ansible/roles:/etc/ansible/roles\n")
	require.Contains(t, env, "ANSIBLE_COLLECTIONS_PATH=/g/k/collections:/usr/share/ansible/collections\n")
	cfg := parseConfiguration([]byte("[defaults]\nroles_path=mine\ncollections_paths=also:/abs\n"))
	env = strings.Join(f.environment("/r/work/bundle/ansible.cfg", cfg, "/g/k"), "\n") + "\n"
	require.Contains(t, env, "ANSIBLE_ROLES_PATH=/r/work/bundle/mine:/g/k/roles\n")
	require.Contains(t, env, "ANSIBLE_COLLECTIONS_PATH=/r/work/bundle/also:/abs:/g/k/collections\n")
	require.NotContains(t, strings.Join(f.environment("", configuration{}, ""), "\n"), "ROLES_PATH")
}

func TestWhatAnsibleGalaxySaysIsClassified(t *testing.T) {
	for text, want := range map[string]struct {
		class errs.Class
		says  string
	}{
		"ERROR! Error when finding available api versions from default (https://h.test/api/) (HTTP Code: 502, Message: Bad Gateway)\n": {errs.Transient, "a server that it fetches from cannot be reached: Error when finding"},
		"[WARNING]: - a.b was NOT installed successfully: Unknown error when attempting\nto call Galaxy at 'https://galaxy.ansible.com/api/': <urlopen error [Errno -2]\nName or service not known>.\nERROR! - you can use --ignore-errors to skip failed roles and finish processing the list.\n": {
			errs.Transient, "a.b was NOT installed successfully: Unknown error when attempting to call Galaxy at 'https://galaxy.ansible.com/api/': <urlopen error [Errno -2] Name or service not known>.",
		},
		"[WARNING]: - a was NOT installed successfully: - command /usr/bin/git clone\nhttps://h.test/x a failed in directory /tmp/ansible-\nlocal-1/tmp2 (rc=128) -\nCloning into 'a'... fatal: unable to access 'https://h.test/x/': Could not\nresolve host: h.test\n": {
			errs.Transient, "a was NOT installed successfully: clone https://h.test/x a Cloning into 'a'... fatal: unable to access 'https://h.test/x/': Could not resolve host: h.test",
		},
		"[WARNING]: - a.b was NOT installed successfully: - sorry, a.b was not found on\nhttps://galaxy.ansible.com/api/.\n":                                                                                                                     {errs.Permanent, "a.b was NOT installed successfully: - sorry, a.b was not found on https://galaxy.ansible.com/api/."},
		"[WARNING]: The specified collections path '/x' is not part of the\nconfigured ones\nfatal: could not read Username for 'https://h.test': terminal prompts disabled\nERROR! Failed to clone a Git repository from `https://h.test/x`.\n": {errs.Permanent, "fatal: could not read Username for 'https://h.test': terminal prompts disabled; Failed to clone a Git repository"},
		"[WARNING]: - a was NOT installed successfully: [Errno 28] No space left on\ndevice\n":                                                                                                                                                   {errs.Operator, "No space left on device"},
		"": {errs.Permanent, "ansible-galaxy ended with 1 and no message"},
	} {
		err := installError(text, 1)
		require.Equal(t, want.class, errs.ClassOf(err), text)
		require.ErrorContains(t, err, want.says)
		require.NotContains(t, err.Error(), "specified collections path")
	}
}
