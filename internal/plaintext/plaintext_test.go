package plaintext

import (
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func TestEscapesAndControlCharactersAreDropped(t *testing.T) {
	for in, want := range map[string]string{
		"plain\ttext\n":                        "plain\ttext\n",
		"\x1b[31mred\x1b[0m":                   "red",
		"\x1b]0;title\x07after":                "after",
		"\x1b]8;;http://x\x1b\\link":           "link",
		"\x1b]never closed\nnext":              "\nnext",
		"\x1b[999\nnext":                       "\nnext",
		"\x1b(Bx\x1bcy":                        "xy",
		"one\r\ntwo\rthree\n":                  "one\ntwo\nthree\n",
		"bell\x07 nul\x00 del\x7f c1\u009b1mx": "bell nul del c1x",
		"bad \xff\xfe utf8":                    "bad \ufffd\ufffd utf8",
		"over\u202eride\u2066":                 "override",
		"日本語 ünïcode 👩\u200d🚀":                 "日本語 ünïcode 👩\u200d🚀",
		"cut \xe6\x97":                         "cut \ufffd\ufffd",
	} {
		require.Equal(t, want, Lines(in), "%q", in)
	}
}

func TestLineAndTextAreBounded(t *testing.T) {
	require.Equal(t, "a b c", Line(" a\n\tb  c ", 9))
	require.Equal(t, "日本…", Line("日本語です", 3))
	require.Equal(t, "a\nb", Text("\na\nb\n", 9))
	require.Empty(t, Line("\x1b[2J", 9))
}

func TestAStreamCutAnywhereGivesTheSame(t *testing.T) {
	text := []byte("x\x1b[31mréd\x1b[0m\x1b]0;t\x07 日\r\n\xffz")
	want := Lines(string(text))
	for i := range text {
		var c Cleaner
		out := c.Append(nil, text[:i])
		out = c.Append(out, text[i:])
		require.Equal(t, want, string(c.Flush(out)), "cut at %d", i)
	}
}

func FuzzLines(f *testing.F) {
	f.Add("\x1b[31m\u202e\xff\r\n")
	f.Fuzz(func(t *testing.T, s string) {
		out := Lines(s)
		require.True(t, utf8.ValidString(out))
		require.NotContains(t, out, "\x1b")
		require.Equal(t, out, Lines(out))
	})
}
