package manifest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A manifest comes from anywhere: whatever it is, the answer is a set or problems,
// soon, and never a panic or a byte that a terminal obeys.
func FuzzCheck(f *testing.F) {
	for _, pattern := range []string{"testdata/cases/*/*.yaml", "../examples/*.yaml"} {
		files, err := filepath.Glob(pattern)
		require.NoError(f, err)
		for _, file := range files {
			text, err := os.ReadFile(file)
			require.NoError(f, err)
			f.Add(string(text), "spec.mmImage=debian12")
		}
	}
	for _, refusal := range refusals {
		f.Add(refusal.text, "server/a:spec.auth={url: x}")
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, text, flag string) {
		start := time.Now()
		opts := Options{Stdin: strings.NewReader(text), WorkDir: dir, Set: []string{flag}}
		set, problems := Check(t.Context(), []string{"-"}, opts, world())
		require.Less(t, time.Since(start), 5*time.Second)
		for _, p := range append(problems, set.Warnings...) {
			require.NotContains(t, p.Text(), "\x1b")
			require.NotEmpty(t, p.Message)
		}
		if len(problems) > 0 {
			return
		}
		for _, doc := range set.Documents {
			spec, err := doc.SpecJSON()
			require.NoError(t, err)
			require.LessOrEqual(t, len(spec), MaxSpecBytes)
		}
		_, err := Order(set.Documents)
		require.NoError(t, err)
	})
}

func FuzzParseOverride(f *testing.F) {
	f.Add("server/a:spec.networkInterface[0].address=10.0.0.1")
	f.Fuzz(func(t *testing.T, text string) {
		if o, err := parseOverride(text); err == nil {
			require.NotEmpty(t, o.path)
		}
	})
}

func BenchmarkCheckGuide(b *testing.B) {
	for b.Loop() {
		_, problems := Check(b.Context(), []string{"testdata/cases/valid"}, Options{}, world())
		require.NoError(b, problems.Err())
	}
}

func BenchmarkCheckThousandServers(b *testing.B) {
	var text strings.Builder
	for i := range 1000 {
		text.WriteString(strings.Replace(serverText("cpu: 2\nmemory: 512\nmmImage: debian12\n"), "{name: a}", "{name: s"+strings.Repeat("i", i%40)+"-"+string(rune('a'+i/40))+"}", 1) + "---\n")
	}
	for b.Loop() {
		_, problems := Check(b.Context(), []string{"-"}, Options{Stdin: strings.NewReader(text.String())}, world())
		require.NoError(b, problems.Err())
	}
}
