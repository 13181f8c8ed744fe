package ansiblex

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// logged is the log of a run that prints text in pieces of a size.
func logged(t *testing.T, r *Redactor, text string, size int) string {
	t.Helper()
	f := &Folder{ID: "r", Dir: t.TempDir()}
	log, err := f.OpenLog()
	require.NoError(t, err)
	log.Hide(r)
	s := &stream{log: log, last: &lastLines{}}
	for rest := text; rest != ""; {
		n := min(size, len(rest))
		_, err := s.Write([]byte(rest[:n]))
		require.NoError(t, err)
		rest = rest[n:]
	}
	s.flush()
	require.NoError(t, log.Close())
	out, err := os.ReadFile(f.LogFile())
	require.NoError(t, err)
	return string(out)
}

func TestSecretsAreHiddenInOutputHoweverItIsCut(t *testing.T) {
	const secret = "hunter2 and more"
	r := NewRedactor(secret, "top\n  second line\nend", "abc", "overlap-a", "lap-a-b", "qu\"ote\\ é")
	for text, want := range map[string]string{
		"a " + secret + " b\n":                    "a *** b\n",
		secret + secret + "\n":                    "******\n",
		"hunter2 and\nno\n":                       "hunter2 and\nno\n",
		"[WARNING]: hunter2\nand more is\n":       "[WARNING]: *** is\n", // wrapped
		"hun\x1b[31mter2 and more\n":              "***\n",
		"x second line y\n":                       "x *** y\n",
		`{"k": "top\n  second line\nend"}` + "\n": `{"k": "***"}` + "\n",
		"abc end\n":                               "abc end\n", // too short
		"overlap-a-b\n":                           "***\n",
		`"qu\"ote\\ \u00e9" "qu\"ote\\ é"` + "\n": `"***" "***"` + "\n",
		"unfinished " + secret:                    "unfinished ***\n",
		"unfinished hunter2 an":                   "unfinished hunter2 an\n",
	} {
		for size := 1; size <= len(text); size++ {
			require.Equal(t, want, logged(t, r, text, size), "%q by %d", text, size)
		}
	}
}

func TestSecretsAreHiddenAtTheCutsOfALineWithoutEnd(t *testing.T) {
	const secret = "hunter2-hunter2-hunter3"
	line := strings.Repeat("x", 1000) + secret
	out := logged(t, NewRedactor(secret), strings.Repeat(line, 1000), 4096)
	require.NotContains(t, out, "hunter2-")
	require.Equal(t, 1000, strings.Count(out, hidden))
	require.NotContains(t, logged(t, NewRedactor("aaaa"), strings.Repeat("a", 1<<20), 4096), "aaaa")
}

func TestSecretsAreHiddenInEventsBeforeTheseAreCut(t *testing.T) {
	const secret = "hunter2-hunter3"
	r := NewRedactor(secret, StatusFailed)
	for _, message := range []string{
		secret, "a\n" + secret, "hun\x1b[0mter2-hunter3",
		strings.Repeat("x", maxMessage-8) + secret,
		strings.Repeat("x", 100) + "hunter2-hu" + leftOut + "ter3 rest",
	} {
		line, err := json.Marshal(Event{
			Event: EventResult, Status: StatusFailed, Host: secret, Task: "with " + secret, Play: strings.Repeat("y", maxName-5) + secret, Message: message,
		})
		require.NoError(t, err)
		var got []Event
		require.NoError(t, readEvents(strings.NewReader(string(line)+"\n"), r, func(e Event) { got = append(got, e) }))
		require.Len(t, got, 1)
		require.Equal(t, StatusFailed, got[0].Status)
		encoded, err := json.Marshal(got[0])
		require.NoError(t, err)
		require.NotRegexp(t, "hunt|ter3", string(encoded))
	}
}

func FuzzNoSecretIsLogged(f *testing.F) {
	f.Add("hunter2\nline", "a hunter2", 3)
	f.Fuzz(func(t *testing.T, secret, text string, size int) {
		if len(secret) < minHidden || strings.ContainsAny(secret, "*\n\r\x1b") || strings.ContainsFunc(secret, func(c rune) bool { return c < ' ' || c > '~' }) {
			t.Skip()
		}
		out := logged(t, NewRedactor(secret), text+secret+text, 1+max(0, size%50))
		require.NotContains(t, out, secret)
	})
}
