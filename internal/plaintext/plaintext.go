// Package plaintext makes text that came from a guest, a playbook or a server on the
// Internet safe to store and to print on a terminal: escape sequences, control
// characters and invisible direction changes are dropped, everything else stays.
//
//	"\x1b[31mfail\x1b[0m\r\n\x07"  ──▶  "fail\n"
package plaintext

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Line gives s as one clean line of at most limit characters; a longer one ends in "…".
// White space of any kind becomes single spaces.
func Line(s string, limit int) string {
	return cut(strings.Join(strings.Fields(Lines(s)), " "), limit)
}

// Text gives s clean, with its line breaks and tabs, at most limit characters long.
func Text(s string, limit int) string { return cut(strings.TrimSpace(Lines(s)), limit) }

// Lines gives s clean, with its line breaks and tabs.
func Lines(s string) string {
	var c Cleaner
	return string(c.Flush(c.Append(nil, []byte(s))))
}

func cut(s string, limit int) string {
	if utf8.RuneCountInString(s) <= limit {
		return s
	}
	runes := []rune(s)
	return string(runes[:max(0, limit-1)]) + "…"
}

type state int

const (
	ground  state = iota
	escape        // after ESC
	control       // in a control sequence: ESC [ … final byte
	str           // in a string (title, link…): until BEL, ESC or the end of the line
	charset       // ESC ( and the like: one more byte
)

// Cleaner cleans a stream that arrives in pieces; a sequence may be cut anywhere.
// The zero value is ready. Not safe for concurrent use.
type Cleaner struct {
	state  state
	rest   []byte // the start of a character whose end has not arrived
	carret bool   // the last character was "\r"
}

// Append cleans src and appends it to dst.
func (c *Cleaner) Append(dst, src []byte) []byte {
	if len(c.rest) > 0 {
		src = append(c.rest, src...)
		c.rest = nil
	}
	for len(src) > 0 {
		if !utf8.FullRune(src) {
			c.rest = append([]byte(nil), src...)
			return dst
		}
		r, n := utf8.DecodeRune(src)
		dst = c.step(dst, r)
		src = src[n:]
	}
	return dst
}

// Flush appends what is left at the end of the stream.
func (c *Cleaner) Flush(dst []byte) []byte {
	for range c.rest {
		dst = c.step(dst, utf8.RuneError)
	}
	c.rest = nil
	return dst
}

// step takes one character. Newline always ends a sequence, so that nobody can hide the
// rest of a log behind one that never closes.
func (c *Cleaner) step(dst []byte, r rune) []byte {
	after := c.carret
	c.carret = r == '\r'
	if r == '\n' || r == '\r' {
		c.state = ground
		if r == '\n' && after {
			return dst
		}
		return append(dst, '\n')
	}
	if r == 0x1b {
		c.state = escape
		return dst
	}
	switch c.state {
	case escape:
		c.state = afterEscape(r)
		return dst
	case control:
		if r >= 0x40 && r <= 0x7e {
			c.state = ground
		}
		return dst
	case str:
		if r == 0x07 || r == 0x9c {
			c.state = ground
		}
		return dst
	case charset:
		c.state = ground
		return dst
	}
	switch {
	case r == 0x9b:
		c.state = control
	case r == 0x90 || r == 0x98 || r >= 0x9d && r <= 0x9f:
		c.state = str
	case r == '\t' || visible(r):
		dst = utf8.AppendRune(dst, r)
	}
	return dst
}

func afterEscape(r rune) state {
	switch {
	case r == '[':
		return control
	case strings.ContainsRune("]PX^_", r):
		return str
	case r >= 0x20 && r <= 0x2f:
		return charset
	}
	return ground
}

// visible reports whether a terminal shows r where it stands. Format characters (category
// Cf: direction overrides, zero-width marks) are not, except the joiners that scripts need.
func visible(r rune) bool {
	const zeroWidthNonJoiner, zeroWidthJoiner = 0x200c, 0x200d
	if r == zeroWidthNonJoiner || r == zeroWidthJoiner || r == utf8.RuneError {
		return true
	}
	return unicode.IsGraphic(r) && r != 0x2028 && r != 0x2029
}
