package manifest

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func names(set *Set) []string {
	var refs []string
	for _, doc := range set.Documents {
		refs = append(refs, doc.Ref())
	}
	return refs
}

func TestAFolderMeansItsOwnManifestsSorted(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "b.yml", networkText("second", "mode: nat"))
	write(t, dir, "a.yaml", networkText("first", "mode: nat"))
	write(t, dir, "notes.txt", "not: yaml: at: all")
	write(t, dir, ".hidden.yaml", "not: yaml: at: all")
	write(t, dir, "sub/c.yaml", networkText("deeper", "mode: nat"))
	write(t, dir, "folder.yaml/x.yaml", networkText("deeper", "mode: nat"))
	require.NoError(t, syscall.Mkfifo(filepath.Join(dir, "pipe.yaml"), 0o600))
	set, problems := Load(t.Context(), []string{dir}, Options{})
	require.NoError(t, problems.Err())
	require.Equal(t, []string{"network/first", "network/second"}, names(set))
	require.Equal(t, dir, set.Documents[0].Dir)
	require.Equal(t, filepath.Join(dir, "a.yaml"), set.Documents[0].File)
}

func TestProblemsOfAllFilesAreReportedInTheirOrder(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "a.yaml", networkText("n", "mtu: 1\n")+"---\n"+networkText("m", "mtu: 2\n"))
	write(t, dir, "b.yaml", "a: [\n")
	write(t, dir, "c.yaml", serverText("cpu: 0\nmmImage: none-such\n"))
	_, problems := Check(t.Context(), []string{dir, filepath.Join(dir, "none.yaml")}, Options{}, world())
	var where []string
	for _, p := range problems {
		where = append(where, filepath.Base(p.File)+" "+p.Path)
	}
	require.Equal(t, []string{"a.yaml spec.mtu", "a.yaml spec.mtu", "b.yaml ", "c.yaml spec.cpu", "c.yaml spec.mmImage", "none.yaml "}, where)
}

func TestSourcesThatCannotBeReadSayWhy(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "empty/x.txt", "")
	for path, want := range map[string]string{
		filepath.Join(dir, "none.yaml"):                                               "no such file or directory",
		filepath.Join(dir, "empty"):                                                   "no *.yaml or *.yml in this folder",
		write(t, dir, "blank.yaml", "# nothing\n---\n"):                               "no documents in it",
		write(t, dir, "binary.yaml", "a: \x00"):                                       "not a text file in UTF-8",
		write(t, dir, "latin.yaml", "a: \xe9"):                                        "not a text file in UTF-8",
		write(t, dir, "large.yaml", strings.Repeat("#\n", MaxFileBytes/2+1)):          "larger than 256 KiB",
		write(t, dir, "keys.yaml", strings.Repeat("k: v\n", MaxFileKeys+1)):           "more than 10000 keys in one file",
		write(t, dir, "docs.yaml", strings.Repeat("---\na: b\n", MaxFileDocuments+1)): "more than 1000 documents in one file",
		write(t, dir, "block.yaml", strings.Repeat("- ", 30_000)):                     "nested more than 40 levels deep",
		write(t, dir, "tags.yaml", strings.Repeat("!!str ", 30_000)):                  "nested more than 40 levels deep",
		write(t, dir, "anchors.yaml", "a: "+strings.Repeat("&a ", 30_000)):            "nested more than 40 levels deep",
		write(t, dir, "flow.yaml", strings.Repeat("{a: ", 5_000)):                     "nested more than 40 levels deep",
		write(t, dir, "explicit.yaml", strings.Repeat("? ", 5_000)):                   "nested more than 40 levels deep",
		write(t, dir, "inflow.yaml", "a: ["+strings.Repeat("- ", 30_000)):             "nested more than 40 levels deep",
		write(t, dir, "inflow2.yaml", "a: {"+strings.Repeat("a: ", 5_000)):            "not valid YAML",
		write(t, dir, "aliases.yaml", "a: ["+strings.Repeat("*", 30_000)):             "nested more than 40 levels deep",
		write(t, dir, "tokens.yaml", "a: ["+strings.Repeat("a,", 60_000)+"]"):         "more than 100000 YAML tokens in one file",
	} {
		_, problems := Load(t.Context(), []string{path}, Options{})
		require.NotEmpty(t, problems, path)
		require.Contains(t, problems[0].String(), want)
		require.Contains(t, problems[0].String(), path)
	}
	_, problems := Load(t.Context(), nil, Options{})
	require.Len(t, problems, 1)
}

func TestByteOrderMarkAndWindowsLineEndsAreTaken(t *testing.T) {
	set, problems := loadText(t, "\xef\xbb\xbf"+strings.ReplaceAll(serverText("cpu: 3\nmemory: 512\n"), "\n", "\r\n"), Options{})
	require.NoError(t, problems.Err())
	require.Equal(t, 3, set.Documents[0].Server.CPU)
	require.Equal(t, 512, set.Documents[0].Server.Memory)
}

func TestAManifestFromAURLReadsNoFilesBesideIt(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/net.yaml":
			_, _ = w.Write([]byte(networkText("n", "mode: nat")))
		case "/files.yaml":
			_, _ = w.Write([]byte(serverText("auth: {publicKey: 'file:/etc/passwd'}\ncloudInit: {userData: 'file:/etc/passwd'}\nansible: {playbook: p.yaml}\n")))
		case "/page.yaml":
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
		case "/large.yaml":
			_, _ = w.Write(make([]byte, MaxFileBytes+1))
		case "/loop.yaml":
			http.Redirect(w, r, "/loop.yaml", http.StatusFound)
		default:
			http.NotFound(w, r)
		}
	}))
	defer server.Close()
	load := func(path string) (*Set, Problems) {
		return Check(t.Context(), []string{server.URL + path}, Options{HTTP: server.Client()}, world())
	}
	set, problems := load("/net.yaml")
	require.NoError(t, problems.Err())
	require.Equal(t, []string{"network/n"}, names(set))
	require.Empty(t, set.Documents[0].Dir)

	_, problems = load("/files.yaml")
	require.Len(t, problems, 3, problems.Error())
	for _, p := range problems {
		require.Contains(t, p.Message, "the manifest came from a URL")
	}
	for path, want := range map[string]string{
		"/page.yaml": "an HTML page", "/large.yaml": "larger than 256 KiB", "/none.yaml": "404 Not Found", "/loop.yaml": "redirects",
	} {
		_, problems = load(path)
		require.Len(t, problems, 1)
		require.Contains(t, problems[0].String(), want)
	}

	_, problems = Load(t.Context(), []string{strings.Replace(server.URL, "https://", "https://user:hunter2@", 1) + "/none.yaml"}, Options{HTTP: server.Client()})
	require.Len(t, problems, 1)
	require.NotContains(t, problems.Error(), "hunter2")

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, problems = Load(ended, []string{server.URL + "/net.yaml"}, Options{HTTP: server.Client()})
	require.Len(t, problems, 1)
	require.Contains(t, problems[0].Message, "context canceled")
}

func TestTooManyProblemsAreCutWithANote(t *testing.T) {
	_, problems := loadText(t, serverText(strings.Repeat("x: 1\n", 0)+manyKeys(MaxFileProblems+50)), Options{})
	require.Len(t, problems, MaxFileProblems+1)
	require.Contains(t, problems[len(problems)-1].Message, "more than 500 problems")
}

func manyKeys(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString("zz" + strings.Repeat("q", i%50) + string(rune('a'+i%26)) + strings.Repeat("w", i/50) + ": 1\n")
	}
	return b.String()
}
