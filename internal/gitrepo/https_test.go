package gitrepo

import (
	"encoding/pem"
	"io"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"burrow.dev/burrow/manifest"
)

// hosted serves a repository as a forge does, for the user "me" with the password hunter2,
// and makes a configuration of git that trusts it. Paths below /moved/ lead over http.
func hosted(t *testing.T, dir string) (url, global string) {
	t.Helper()
	program, err := exec.LookPath("git")
	require.NoError(t, err)
	backend := &cgi.Handler{
		Stderr: io.Discard,
		Path:   program, Args: []string{"http-backend"},
		Env: []string{"GIT_PROJECT_ROOT=" + dir, "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*"},
	}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if rest, moved := strings.CutPrefix(r.URL.Path, "/moved/"); moved {
			http.Redirect(w, r, "http://"+r.Host+"/"+rest, http.StatusMovedPermanently)
			return
		}
		if user, password, _ := r.BasicAuth(); user != "me" || password != "hunter2" {
			w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		backend.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	block := &pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}
	require.NoError(t, os.WriteFile(ca, pem.EncodeToMemory(block), 0o600))
	global = filepath.Join(t.TempDir(), "gitconfig")
	require.NoError(t, os.WriteFile(global, []byte("[http]\n\tproxy =\n"), 0o600))
	t.Setenv("GIT_CONFIG_GLOBAL", global)
	t.Setenv("GIT_SSL_CAINFO", ca)
	return server.URL, global
}

func TestARepositoryIsFetchedOverHTTPSWithTheUsersCredentialHelper(t *testing.T) {
	dir, want := repository(t)
	url, global := hosted(t, dir)
	_, err := Fetch(t.Context(), manifest.GitSource{URL: url + "/.git"}, t.TempDir())
	require.ErrorContains(t, err, "terminal prompts disabled")

	config, err := os.OpenFile(global, os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = config.WriteString("[credential]\n\thelper = \"!f() { echo username=me; echo password=hunter2; }; f\"\n")
	require.NoError(t, err)
	require.NoError(t, config.Close())
	to := t.TempDir()
	commit, err := Fetch(t.Context(), manifest.GitSource{URL: url + "/.git"}, to)
	require.NoError(t, err)
	require.Equal(t, want, commit)
	require.FileExists(t, filepath.Join(to, "site.yaml"))
	_, err = Fetch(t.Context(), manifest.GitSource{URL: url + "/nosuch"}, t.TempDir())
	require.ErrorContains(t, err, "not found")
	_, err = Fetch(t.Context(), manifest.GitSource{URL: url + "/moved/.git"}, t.TempDir())
	require.ErrorContains(t, err, `Protocol "http" not supported`, "a server does not lead away from https")
	require.NotContains(t, err.Error(), "hunter2")
}
