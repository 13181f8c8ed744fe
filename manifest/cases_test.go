package manifest

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write golden files")

// world is what the cases may take for granted.
func world() *Snapshot {
	return NewSnapshot(nil, []string{"ubuntu24.04", "debian12"}, true)
}

// caseDirs are our own copy of the cases, and those beside the repository where there are any.
func caseDirs() []string {
	dirs := []string{filepath.Join("testdata", "cases")}
	if beside := filepath.Join("..", "..", "shared", "cases"); isDir(beside) {
		dirs = append(dirs, beside)
	}
	return dirs
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

func TestValidCasesAreOneApplyWithoutAMessage(t *testing.T) {
	for _, dir := range caseDirs() {
		set, problems := Check(t.Context(), []string{filepath.Join(dir, "valid")}, Options{}, world())
		require.NoError(t, problems.Err())
		require.Empty(t, set.Warnings)
		require.Len(t, set.Documents, 5)
	}
}

// wanted is what each invalid case must say: its line, and what its message names.
var wanted = map[string][]struct {
	line int
	says []string
}{
	"alias-bomb.yaml":          {{14, []string{"server/bomb", "spec.ansible.extraVars.f", "alias expansion", "100000"}}},
	"bad-key.yaml":             {{9, []string{"not an SSH public key (\"<!DOCTYPE html><html…\")"}}},
	"both-user-and-users.yaml": {{8, []string{"auth.user and auth.users exclude each other", "remove one"}}},
	"duplicate-key.yaml":       {{8, []string{"spec.cpu: is given twice", "line 6"}}},
	"many-at-once.yaml": {
		{6, []string{"metadata.name", "Not_A_Valid_Name"}},
		{8, []string{"spec.cpu", "0"}},
		{9, []string{"spec.memory", "-1"}},
		{12, []string{"spec.networkInterface[0].address", "outside network", "192.168.40.0/28"}},
	},
	"missing-playbook.yaml": {{8, []string{"playbook/no-such.yaml does not exist (looked for beside this file); nothing is built"}}},
	"overlap.yaml":          {{10, []string{`10.30.1.0/24 overlaps network "wide" (10.30.0.0/16) in the same routing domain`}}},
	"static-clash.yaml":     {{21, []string{"server/second", "192.168.41.10 is already taken by server/first of this apply"}}},
	"unknown-field.yaml":    {{9, []string{"spec.networkInterfaces: unknown field; did you mean networkInterface?"}}},
	"unknown-network.yaml":  {{8, []string{`network "nowhere" is neither in this apply nor known`}}},
}

func TestInvalidCasesNameFileLineFieldAndMend(t *testing.T) {
	for _, dir := range caseDirs() {
		files, err := filepath.Glob(filepath.Join(dir, "invalid", "*.yaml"))
		require.NoError(t, err)
		require.NotEmpty(t, files)
		for _, file := range files {
			t.Run(filepath.Base(file), func(t *testing.T) {
				_, problems := Check(t.Context(), []string{file}, Options{}, world())
				want, known := wanted[filepath.Base(file)]
				require.True(t, known, "a new case: say here what it must name")
				require.Len(t, problems, len(want), problems.Error())
				for i, w := range want {
					require.Equal(t, file, problems[i].File)
					require.Equal(t, w.line, problems[i].Line, problems[i].Text())
					for _, text := range w.says {
						require.Contains(t, problems[i].String(), text)
					}
				}
				golden(t, filepath.Join("testdata", "golden", filepath.Base(file)+".txt"), strings.ReplaceAll(problems.Error(), file, filepath.Base(file)))
			})
		}
	}
}

// The first comment of a case states its line; our table must agree with it.
func TestInvalidCasesStandAtTheLineTheirCommentNames(t *testing.T) {
	stated := regexp.MustCompile(`line (\d+)`)
	files, err := filepath.Glob(filepath.Join("testdata", "cases", "invalid", "*.yaml"))
	require.NoError(t, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		first, _, _ := strings.Cut(string(text), "\n")
		lines := stated.FindAllStringSubmatch(first, -1)
		if len(lines) == 0 {
			continue // states no line
		}
		_, problems := Check(t.Context(), []string{file}, Options{}, world())
		require.Len(t, problems, len(lines), file)
		for i, line := range lines {
			require.Equal(t, *number(line[1]), problems[i].Line, file)
		}
	}
}

func TestAliasBombIsRefusedQuicklyAndWithLittleMemory(t *testing.T) {
	file := filepath.Join("testdata", "cases", "invalid", "alias-bomb.yaml")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := time.Now()
	_, problems := Check(t.Context(), []string{file}, Options{}, world())
	elapsed := time.Since(start)
	runtime.ReadMemStats(&after)
	require.Len(t, problems, 1)
	require.Less(t, elapsed, time.Second)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(100<<20))
}

func TestProblemsAreAListInJSON(t *testing.T) {
	_, problems := Check(t.Context(), []string{filepath.Join("testdata", "cases", "invalid", "unknown-field.yaml")}, Options{}, world())
	data, err := json.Marshal(problems)
	require.NoError(t, err)
	require.JSONEq(t, `[{"file":"testdata/cases/invalid/unknown-field.yaml","line":9,"column":3,"object":"server/typo","path":"spec.networkInterfaces",
		"message":"unknown field","next":"did you mean networkInterface?","excerpt":"  networkInterfaces:"}]`, string(data))
	data, err = json.Marshal(Problems(nil))
	require.NoError(t, err)
	require.Equal(t, "[]", string(data))
}

func golden(t *testing.T, path, got string) {
	t.Helper()
	got += "\n"
	if *update {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}
