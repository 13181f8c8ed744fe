package ansible

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"burrow.dev/burrow/internal/ansiblex"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/galaxy/galaxytest"
)

func lines(text ...string) string { return strings.Join(text, "\n") + "\n" }

// ownedRole is a role's repository that the runs' user may read.
func ownedRole(t *testing.T) string {
	t.Helper()
	user, err := ansiblex.LookupUser(runner)
	require.NoError(t, err)
	return galaxytest.RoleRepository(t, user.UID)
}

// needing asks for a run whose playbook uses the role greet and the filter burrow.test.hail.
func (s *site) needing(requirements string, more map[string]string) RunIn {
	files := map[string]string{
		"site.yaml": lines("- hosts: all", "  gather_facts: false", "  roles: [greet]", "  tasks:",
			"    - ansible.builtin.debug: {msg: \"{{ 'all' | burrow.test.hail }}\"}"),
		"requirements.yml": requirements,
	}
	for name, text := range more {
		files[name] = text
	}
	in := s.in(files)
	in.Ansible.Requirements = "requirements.yml"
	return in
}

func checkOf(in RunIn) CheckIn {
	return CheckIn{Owner: in.Owner, Bundle: in.Bundle, Ansible: in.Ansible}
}

func both(role, hub string) string {
	return lines("roles:", "  - {src: 'git+file://"+role+"', version: v1, name: greet}", "collections:", "  - {name: burrow.test, version: 1.0.0, source: '"+hub+"/api/'}")
}

// cached lists what is kept of requirements.
func (s *site) cached() []string {
	s.t.Helper()
	found, err := filepath.Glob(s.dir + "-galaxy/*")
	require.NoError(s.t, err)
	hidden, err := filepath.Glob(s.dir + "-galaxy/.*")
	require.NoError(s.t, err)
	return append(found, hidden...)
}

func TestRequirementsAreInstalledOnceAndThenNeedNoNetwork(t *testing.T) {
	s := newSite(t)
	hub, role := galaxytest.NewHub(t), ownedRole(t)
	in := s.needing(both(role, hub.URL), nil)
	_, err := s.a.Check(t.Context(), checkOf(in))
	require.NoError(t, err)
	require.Len(t, s.cached(), 1)
	require.EqualValues(t, 1, hub.Downloads.Load())
	hub.Close()
	require.NoError(t, os.RemoveAll(role))

	out, err := s.a.Run(t.Context(), in)
	require.NoError(t, err, s.lastLog())
	require.Contains(t, s.log(), "from the fetched role")
	require.Contains(t, s.log(), "hail all")
	require.Contains(t, s.log(), "burrow: requirements "+out.Requirements+": installed before")
	require.Regexp(t, "^sha256:[0-9a-f]{64}$", out.Requirements)

	// Another folder with the same file has them too; another file has not.
	_, err = s.a.Check(t.Context(), checkOf(s.needing(both(role, hub.URL), map[string]string{"more": "x"})))
	require.NoError(t, err)
	_, err = s.a.Check(t.Context(), checkOf(s.needing(both(role, hub.URL)+"# other\n", nil)))
	require.Error(t, err)
	s.nothingLeft()
}

func TestWhatRequirementsDoNotGetIsForAPersonOrTriedAgain(t *testing.T) {
	s := newSite(t)
	role := ownedRole(t)
	in := s.needing(lines("- {src: 'git+file://"+role+"', version: v9, name: greet}"), nil)
	_, err := s.a.Check(t.Context(), checkOf(in))
	require.Equal(t, errs.Permanent, errs.ClassOf(err))
	require.ErrorContains(t, err, "server/db: install requirements of the playbook: greet was NOT installed")
	require.ErrorContains(t, err, "; mend requirements.yml and apply again")
	_, err = s.a.Run(t.Context(), in)
	require.Equal(t, errs.Operator, errs.ClassOf(err), "the server is built")
	require.ErrorContains(t, err, "mend requirements.yml, then burrow retry server/db -f FILE")
	require.Contains(t, s.log(), "pathspec 'v9' did not match")

	in = s.needing(lines("- {src: 'git+https://"+galaxytest.NobodyListens(t)+"/x', version: v1, name: greet}"), nil)
	_, err = s.a.Check(t.Context(), checkOf(in))
	require.Equal(t, errs.Transient, errs.ClassOf(err))
	require.ErrorContains(t, err, "a server that it fetches from cannot be reached: greet")
	require.Empty(t, s.cached())
	s.nothingLeft()
}

func TestAnInstallThatIsCutOffIsNotTakenAsWhole(t *testing.T) {
	s := newSite(t)
	hub, role := galaxytest.NewHub(t), ownedRole(t)
	in := s.needing(both(role, hub.URL), nil)
	ctx, cancel := context.WithCancel(t.Context())
	hub.Hold = func(r *http.Request) { cancel(); <-r.Context().Done() }
	_, err := s.a.Check(ctx, checkOf(in))
	require.ErrorIs(t, err, context.Canceled)
	require.Empty(t, s.cached())
	hub.Hold = nil
	_, err = s.a.Check(t.Context(), checkOf(in))
	require.NoError(t, err)
	// A worker that was killed while it kept what was installed.
	half := filepath.Join(s.dir+"-galaxy", ".new-1")
	require.NoError(t, os.MkdirAll(filepath.Join(half, "roles"), 0o700))
	require.NoError(t, s.a.ReapAll(t.Context()))
	require.NoDirExists(t, half)
	require.Len(t, s.cached(), 1)
	hub.Close()
	s.nothingLeft()
}

func TestSeveralRunsThatNeedTheSameInstallItOnce(t *testing.T) {
	s := newSite(t)
	hub, role := galaxytest.NewHub(t), ownedRole(t)
	in := s.needing(both(role, hub.URL), nil)
	errors := make([]error, 3)
	var all sync.WaitGroup
	for i := range errors {
		all.Go(func() { _, errors[i] = s.a.Check(t.Context(), checkOf(in)) })
	}
	all.Wait()
	for _, err := range errors {
		require.NoError(t, err)
	}
	require.EqualValues(t, 1, hub.Downloads.Load())
	require.Len(t, s.cached(), 1)
}

func TestAPlaybookCannotChangeWhatIsKeptForOthers(t *testing.T) {
	s := newSite(t)
	hub, role := galaxytest.NewHub(t), ownedRole(t)
	in := s.needing(both(role, hub.URL), map[string]string{"site.yaml": lines("- hosts: all", "  gather_facts: false", "  roles: [greet]", "  tasks:",
		"    - ansible.builtin.debug: {msg: \"{{ lookup('pipe', 'cd "+s.dir+"-galaxy/*/roles/greet && id -un && (touch x; mkdir y; rm -rf tasks; mv meta z; true)') }}\"}",
		"    - ansible.builtin.debug: {msg: \"{{ lookup('pipe', 'find "+s.dir+"-galaxy -writable | wc -l') }} writable\"}")})
	_, err := s.a.Run(t.Context(), in)
	require.NoError(t, err, s.lastLog())
	require.Contains(t, s.log(), `"msg": "`+runner+`"`, "it came there")
	require.Contains(t, s.log(), "0 writable")
	kept := s.cached()
	require.Len(t, kept, 1)
	require.FileExists(t, filepath.Join(kept[0], "roles/greet/tasks/main.yml"))
	hub.Close()
	s.nothingLeft()
}
