package ansiblex

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"burrow.dev/burrow/internal/plaintext"
)

const (
	// minHidden is the shortest text that is hidden: a shorter one is in every other word.
	minHidden = 4
	// hidden stands where a secret was.
	hidden = "***"
	// leftOut is what our callback plugin puts where it cuts a long text.
	leftOut = " […] "
)

// Redactor replaces secrets in what a run writes. nil hides nothing. Safe for concurrent use.
type Redactor struct {
	spellings [256][]string // by their first byte
	all       []string
	longest   int
}

// NewRedactor hides values: each as a whole and each of its lines, also as JSON, Python
// and a shell spell them. Other encodings of a secret (base64, a hash) it does not know.
func NewRedactor(values ...string) *Redactor {
	r := &Redactor{}
	for _, value := range values {
		for line := range strings.Lines(value) {
			r.hide(strings.TrimSpace(line))
		}
		r.hide(value)
		r.hide(strings.TrimSpace(value)) // as Ansible reads a password file
	}
	slices.Sort(r.all)
	r.all = slices.Compact(r.all)
	for _, s := range r.all {
		r.spellings[s[0]] = append(r.spellings[s[0]], s)
		r.longest = max(r.longest, len(s))
	}
	return r
}

func (r *Redactor) hide(secret string) {
	if len(secret) < minHidden {
		return
	}
	encoded := inJSON(secret)
	for _, s := range []string{
		secret, plaintext.Lines(secret), encoded, ascii(encoded), inJSON(encoded), inJSON(ascii(encoded)),
		strings.NewReplacer(`\`, `\\`, `'`, `\'`, "\n", `\n`, "\r", `\r`, "\t", `\t`).Replace(secret), // Python
		strings.ReplaceAll(secret, `'`, `'"'"'`), strings.ReplaceAll(secret, `'`, `''`),               // a shell, YAML
	} {
		if len(s) >= minHidden {
			r.all = append(r.all, s)
		}
	}
}

// inJSON is text inside a JSON string.
func inJSON(text string) string {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(text); err != nil {
		return text
	}
	return strings.TrimSuffix(out.String(), "\"\n")[1:]
}

// ascii spells what is not ASCII as Python's JSON does.
func ascii(text string) string {
	var out strings.Builder
	for _, c := range text {
		if c < utf8.RuneSelf {
			out.WriteRune(c)
			continue
		}
		for _, unit := range utf16.Encode([]rune{c}) {
			out.WriteString(`\u` + strconv.FormatUint(0x10000|uint64(unit), 16)[1:])
		}
	}
	return out.String()
}

// Text gives s without secrets, and without the halves of one that our plugin has cut.
func (r *Redactor) Text(s string) string {
	if r == nil || len(r.all) == 0 {
		return s
	}
	parts := strings.Split(s, leftOut)
	for i, part := range parts {
		covered, _ := r.find([]byte(part))
		part = string(replace([]byte(part), covered))
		if i < len(parts)-1 {
			part = r.withoutStart(part)
		}
		if i > 0 {
			part = r.withoutEnd(part)
		}
		parts[i] = part
	}
	return strings.Join(parts, leftOut)
}

// withoutStart hides the beginning of a secret at the end of s.
func (r *Redactor) withoutStart(s string) string {
	most := 0
	for _, secret := range r.all {
		for n := min(len(secret)-1, len(s)); n > most; n-- {
			if strings.HasSuffix(s, secret[:n]) {
				most = n
			}
		}
	}
	if most == 0 {
		return s
	}
	return s[:len(s)-most] + hidden
}

// withoutEnd hides the end of a secret at the beginning of s.
func (r *Redactor) withoutEnd(s string) string {
	most := 0
	for _, secret := range r.all {
		for n := min(len(secret)-1, len(s)); n > most; n-- {
			if strings.HasPrefix(s, secret[len(secret)-n:]) {
				most = n
			}
		}
	}
	if most == 0 {
		return s
	}
	return hidden + s[most:]
}

// span is a part of a text, from its start to before its end.
type span struct{ start, end int }

// find gives where secrets are, and where something begins that may become one with more
// text: len(text) when there is none.
func (r *Redactor) find(text []byte) (covered []span, open int) {
	open = len(text)
	for i := range text {
		for _, secret := range r.spellings[text[i]] {
			n, whole := match(text[i:], secret)
			last := len(covered) - 1
			switch {
			case n == 0:
			case !whole:
				open = min(open, i)
			case last >= 0 && i < covered[last].end:
				covered[last].end = max(covered[last].end, i+n)
			default:
				covered = append(covered, span{i, i + n})
			}
		}
	}
	for _, s := range covered {
		if open > s.start && open < s.end {
			open = s.start
		}
	}
	return covered, open
}

// match tells how much of text's beginning is the secret: with line breaks in between, for
// Ansible wraps its warnings. whole is false when text ends before the secret does.
func match(text []byte, secret string) (n int, whole bool) {
	j := 0
	for j < len(secret) {
		switch {
		case n == len(text):
			return n, false
		case text[n] == secret[j]:
			j++
			n++
		case j > 0 && text[n] == '\n':
			for j < len(secret)-1 && secret[j] == ' ' { // is not there where a line was wrapped
				j++
			}
			n++
		default:
			return 0, false
		}
	}
	return n, true
}

func replace(text []byte, covered []span) []byte {
	if len(covered) == 0 {
		return text
	}
	out := make([]byte, 0, len(text))
	from := 0
	for _, s := range covered {
		out = append(append(out, text[from:s.start]...), hidden...)
		from = s.end
	}
	return append(out, text[from:]...)
}
