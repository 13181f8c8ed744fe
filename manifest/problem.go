package manifest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Problem is one thing wrong with a manifest, and its mend. None carries a secret.
type Problem struct {
	// File is the source as the user named it: a path, a URL, "-", or "--set spec.cpu".
	File string `json:"file"`
	// Line and Column count from 1; 0 where there is none.
	Line   int `json:"line,omitempty"`
	Column int `json:"column,omitempty"`
	// Object is the document, "server/db"; empty when it could not be read.
	Object string `json:"object,omitempty"`
	// Path is the field as the user wrote it: "spec.networkInterface[0].address".
	Path    string `json:"path,omitempty"`
	Message string `json:"message"`
	// Next is what to do about it.
	Next string `json:"next,omitempty"`
	// Excerpt is the source line, cut where it could give a secret away.
	Excerpt string `json:"excerpt,omitempty"`

	order int // of its file in the apply
}

// String gives one line: "f.yaml:9:3: server/db: spec.cpus: unknown field; did you mean cpu?".
func (p Problem) String() string {
	var b strings.Builder
	b.WriteString(p.File)
	if p.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", p.Line, p.Column)
	}
	for _, part := range []string{p.Object, p.Path, p.Message} {
		if part != "" {
			b.WriteString(": ")
			b.WriteString(part)
		}
	}
	if p.Next != "" {
		b.WriteString("; ")
		b.WriteString(p.Next)
	}
	return printable(b.String())
}

// Text gives String and, below it, the line of the source with a mark under the place.
func (p Problem) Text() string {
	if p.Line == 0 || p.Excerpt == "" {
		return p.String()
	}
	number := strconv.Itoa(p.Line)
	mark := strings.Repeat(" ", max(p.Column-1, 0))
	return fmt.Sprintf("%s\n  %s | %s\n  %*s | %s^", p.String(), number, printable(p.Excerpt), len(number), "", mark)
}

// Problems are in the order of sources and lines.
type Problems []Problem

// Error gives every problem's Text.
func (ps Problems) Error() string {
	texts := make([]string, len(ps))
	for i, p := range ps {
		texts[i] = p.Text()
	}
	return strings.Join(texts, "\n")
}

// Err is ps as an error, nil when there is none.
func (ps Problems) Err() error {
	if len(ps) == 0 {
		return nil
	}
	return ps
}

// MarshalJSON gives a list, an empty one too.
func (ps Problems) MarshalJSON() ([]byte, error) {
	if ps == nil {
		ps = Problems{}
	}
	return json.Marshal([]Problem(ps))
}

func (ps Problems) sort() {
	slices.SortStableFunc(ps, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.order, b.order), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
}

// printable replaces what could move a terminal's cursor or hide text.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r == ' ' || unicode.IsPrint(r) {
			return r
		}
		if r == '\t' {
			return ' '
		}
		return '\uFFFD'
	}, s)
}

// quote shows outside text in a message: at most 60 characters of it.
func quote(s string) string { return strconv.Quote(clip(s, 60)) }

// clip cuts s to n characters.
func clip(s string, n int) string {
	count := 0
	for i := range s {
		if count == n {
			return s[:i] + "…"
		}
		count++
	}
	return s
}
