package render

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Clean makes text from elsewhere safe for one line of a terminal: control
// characters, bidirectional overrides and bytes that are no UTF-8 become visible
// escapes (`\n`, `\x1b`, `\u202e`).
func Clean(s string) string { return clean(s, "") }

// CleanLines is Clean for text of several lines: newlines and tabs stay.
func CleanLines(s string) string { return clean(s, "\n\t") }

func clean(s, keep string) string {
	if plain(s, keep) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case harmless(r, keep):
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case r < 0x100:
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
		i += size
	}
	return b.String()
}

func plain(s, keep string) bool {
	for i, r := range s {
		if r == utf8.RuneError && !strings.HasPrefix(s[i:], "\uFFFD") {
			return false
		}
		if !harmless(r, keep) {
			return false
		}
	}
	return true
}

// harmless reports whether a terminal only prints r. Format characters (Cf) turn the
// direction of text around or hide it; none of them is needed in our output.
func harmless(r rune, keep string) bool {
	if strings.ContainsRune(keep, r) {
		return true
	}
	if r == '\u2028' || r == '\u2029' {
		return false
	}
	return !unicode.Is(unicode.Cc, r) && !unicode.Is(unicode.Cf, r)
}
