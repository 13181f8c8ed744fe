package keys

import (
	"encoding/base64"
	"fmt"
	"strings"
	"unicode"

	"golang.org/x/crypto/ssh"
)

// maxComment bounds what is kept of a key's comment; it is for people.
const maxComment = 120

// lines collects authorized_keys lines without duplicates, in order.
type lines struct {
	keys     []string
	seen     map[string]bool
	repeated int
}

// parse adds every key of text. Empty lines and comments are skipped; a line that does
// not parse is an error with its number, since a key that is left out is a person who
// cannot log in.
func (l *lines) parse(text string) error {
	for n, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if err := l.add(line); err != nil {
			return fmt.Errorf("line %d is not an SSH public key: %w", n+1, err)
		}
	}
	return nil
}

func (l *lines) add(line string) error {
	key, comment, options, rest, err := ssh.ParseAuthorizedKey([]byte(line))
	if err != nil {
		return err
	}
	if len(rest) > 0 {
		return fmt.Errorf("more than one line")
	}
	id := string(key.Marshal())
	if l.seen[id] {
		l.repeated++
		return nil
	}
	for _, o := range options {
		if o != printable(o) {
			return fmt.Errorf("its options hold control characters")
		}
	}
	fields := []string{key.Type(), base64.StdEncoding.EncodeToString(key.Marshal())}
	if len(options) > 0 {
		fields = append([]string{strings.Join(options, ",")}, fields...)
	}
	if comment = shorten(printable(comment)); comment != "" {
		fields = append(fields, comment)
	}
	if l.seen == nil {
		l.seen = map[string]bool{}
	}
	l.seen[id] = true
	l.keys = append(l.keys, strings.Join(fields, " "))
	return nil
}

// printable drops control characters and what is not UTF-8.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r == unicode.ReplacementChar || !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, s)
}

func shorten(s string) string {
	if runes := []rune(s); len(runes) > maxComment {
		s = string(runes[:maxComment])
	}
	return strings.TrimSpace(s)
}
