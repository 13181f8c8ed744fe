package manifest

import (
	"fmt"
	"regexp"
)

// shownCharacters is how much of a value that may be anything at all is shown.
const shownCharacters = 20

// secretLine finds what follows a key that sounds like a secret, to the line's end.
var secretLine = regexp.MustCompile(`(?i)((?:password|passwd|passphrase|secret|token)[\w-]*["']?\s*[:=]\s*)\S.*`)

// userInfo finds the user and password of a URL.
var userInfo = regexp.MustCompile(`://[^/\s@'"]+@`)

// issue is a problem before its document's name and its excerpt are added.
type issue struct {
	at      position
	path    string
	message string
	next    string
	// cut is how many characters of the source are shown from at on; 0 means all, -1 none.
	cut int
}

// collector gathers problems and warnings of one apply, up to a limit.
type collector struct {
	problems Problems
	warnings Problems
	full     bool
}

func (c *collector) problem(object string, i issue) {
	if c.full {
		return
	}
	if len(c.problems) == MaxFileProblems {
		c.full = true
		i = issue{at: i.at, cut: -1, message: fmt.Sprintf("more than %d problems, the limit; the others are not shown", MaxFileProblems)}
	}
	c.problems = append(c.problems, i.problem(object))
}

func (c *collector) warn(object string, i issue) {
	if len(c.warnings) < MaxFileProblems {
		c.warnings = append(c.warnings, i.problem(object))
	}
}

func (i issue) problem(object string) Problem {
	p := Problem{Object: object, Path: i.path, Message: i.message, Next: i.next, Line: i.at.line, Column: i.at.column}
	if i.at.source == nil {
		return p
	}
	p.File, p.order = i.at.source.name, i.at.source.order
	p.Excerpt = i.excerpt()
	return p
}

// excerpt is the source line without what could be a secret.
func (i issue) excerpt() string {
	line := []rune(i.at.source.line(i.at.line))
	if i.cut != 0 {
		keep := max(i.at.column-1, 0)
		if i.cut > 0 {
			if keep < len(line) && (line[keep] == '"' || line[keep] == '\'') {
				keep++
			}
			keep += i.cut
		}
		if keep < len(line) {
			line = append(line[:keep:keep], '…')
		}
	}
	text := userInfo.ReplaceAllString(string(line), "://…@")
	return clip(secretLine.ReplaceAllString(text, "${1}…"), 160)
}
