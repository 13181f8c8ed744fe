// Package galaxytest has what tests install roles and collections from, without any network:
// a server of collections on this machine, and a git repository with a role.
package galaxytest

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// Hub answers as a galaxy server (API version 3) does, for the collection burrow.test 1.0.0,
// which has the filter hail.
type Hub struct {
	*httptest.Server
	// Downloads counts them.
	Downloads atomic.Int32
	// Hold, if set, is called before a download goes on.
	Hold func(*http.Request)
}

// NewHub starts one, until the test ends. It has the real ansible-galaxy build the collection.
func NewHub(t testing.TB) *Hub {
	t.Helper()
	src := t.TempDir()
	for name, text := range map[string]string{
		"galaxy.yml":             "namespace: burrow\nname: test\nversion: 1.0.0\nreadme: README.md\nauthors: [a]\n",
		"README.md":              "test\n",
		"plugins/filter/hail.py": "class FilterModule:\n    def filters(self):\n        return {'hail': lambda name: 'hail ' + name}\n",
	} {
		put(t, src, name, text)
	}
	build := exec.Command("ansible-galaxy", "collection", "build", "--output-path", src, src)
	build.Env = append(os.Environ(), "HOME="+t.TempDir())
	out, err := build.CombinedOutput()
	require.NoError(t, err, string(out))
	archive, err := os.ReadFile(filepath.Join(src, "burrow-test-1.0.0.tar.gz"))
	require.NoError(t, err)
	sum := sha256.Sum256(archive)

	h := &Hub{}
	const base = "/api/v3/collections/burrow/test/"
	mux := http.NewServeMux()
	reply := func(path string, content func() any) {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(content())
		})
	}
	type object = map[string]any
	reply("GET /api/{$}", func() any { return object{"available_versions": object{"v3": "v3/"}} })
	reply("GET "+base+"{$}", func() any {
		return object{"namespace": "burrow", "name": "test", "created_at": "2026-01-01", "updated_at": "2026-01-01", "highest_version": object{"version": "1.0.0"}}
	})
	reply("GET "+base+"versions/{$}", func() any {
		return object{"meta": object{"count": 1}, "links": object{"next": nil}, "data": []object{{"version": "1.0.0", "href": base + "versions/1.0.0/"}}}
	})
	reply("GET "+base+"versions/1.0.0/{$}", func() any {
		return object{
			"namespace": object{"name": "burrow"}, "collection": object{"name": "test"}, "name": "test", "version": "1.0.0",
			"href": base + "versions/1.0.0/", "download_url": h.URL + "/test.tar.gz", "signatures": []any{},
			"artifact": object{"sha256": hex.EncodeToString(sum[:])}, "metadata": object{"dependencies": object{}},
		}
	})
	mux.HandleFunc("GET /test.tar.gz", func(w http.ResponseWriter, r *http.Request) {
		h.Downloads.Add(1)
		if h.Hold != nil {
			h.Hold(r)
		}
		_, _ = w.Write(archive)
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, `{"errors": [{"detail": "not found"}]}`, http.StatusNotFound)
	})
	h.Server = httptest.NewServer(mux)
	t.Cleanup(h.Close)
	return h
}

// RoleRepository makes a git repository with a role that prints "from the fetched role", tagged
// v1, and gives its folder. It is the user owner's: git serves nobody else's.
func RoleRepository(t testing.TB, owner int) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "burrow-role-")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	put(t, dir, "tasks/main.yml", "- name: Greet\n  ansible.builtin.debug:\n    msg: from the fetched role\n")
	put(t, dir, "meta/main.yml", "galaxy_info: {author: a, description: b, license: MIT, min_ansible_version: '2.9'}\ndependencies: []\n")
	for _, args := range [][]string{
		{"git", "init", "-q", "-b", "main"},
		{"git", "add", "-A"},
		{"git", "-c", "user.name=a", "-c", "user.email=a@b.test", "commit", "-qm", "x"},
		{"git", "tag", "v1"},
		{"chown", "-R", strconv.Itoa(owner), dir},
	} {
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, string(out))
	}
	return dir
}

func put(t testing.TB, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, name)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
}

// NobodyListens gives an address that refuses connections.
func NobodyListens(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	return l.Addr().String()
}
