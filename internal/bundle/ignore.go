package bundle

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
)

// maxIgnore bounds the ignore file: its patterns are held against each name.
const maxIgnore = 1 << 20

// always are the patterns that apply before those of the user: version control and
// what Ansible and Python leave behind. A user's "!pattern" takes one back.
var always = []string{".git", ".hg", ".svn", "__pycache__", "*.pyc", "*.retry", ".DS_Store"}

// rule is one line of an ignore file.
type rule struct {
	pattern  []string // path elements; "**" spans any number of them
	anchored bool     // matches from the folder's top only
	dirOnly  bool
	negate   bool
}

// ignore decides what stays out of a bundle. The last rule that matches wins.
type ignore []rule

// readIgnore reads the ignore file of dir, if there is one. The folder may be somebody
// else's: a symlink that leaves it is not followed, nothing but a file is opened.
func readIgnore(dir string) ([]byte, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	info, err := root.Stat(IgnoreFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", IgnoreFile, err)
	case !info.Mode().IsRegular() || info.Size() > maxIgnore:
		return nil, fmt.Errorf("%s is not a file of at most %s: %w", IgnoreFile, mib(maxIgnore), ErrUnsupported)
	}
	return root.ReadFile(IgnoreFile)
}

// parseIgnore reads the lines of an ignore file: "#" comments, "/" at the front
// anchors, "/" at the end means folders only, "*", "?", "[…]" and "**" are globs, "!" takes back.
func parseIgnore(text []byte) ignore {
	var rules ignore
	for _, p := range always {
		rules = append(rules, parseRule(p))
	}
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, len(text)+1)
	for lines.Scan() {
		line := strings.TrimRight(lines.Text(), " \t\r")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		rules = append(rules, parseRule(line))
	}
	return rules
}

func parseRule(line string) rule {
	var r rule
	if rest, ok := strings.CutPrefix(line, "!"); ok {
		r.negate, line = true, rest
	}
	if rest, ok := strings.CutSuffix(line, "/"); ok {
		r.dirOnly, line = true, rest
	}
	r.anchored = strings.Contains(line, "/")
	r.pattern = strings.Split(strings.TrimPrefix(line, "/"), "/")
	return r
}

// skips reports whether name (slash-separated, relative) stays out.
func (ig ignore) skips(name string, isDir bool) bool {
	skip := false
	parts := strings.Split(name, "/")
	for _, r := range ig {
		if r.dirOnly && !isDir {
			continue
		}
		if r.matches(parts) {
			skip = !r.negate
		}
	}
	return skip
}

func (r rule) matches(parts []string) bool {
	if r.anchored {
		return matchParts(r.pattern, parts)
	}
	return matchParts(r.pattern, parts[len(parts)-1:])
}

// matchParts matches path elements against pattern elements. An invalid glob matches
// only itself. The work is bounded by len(pattern) × len(parts).
func matchParts(pattern, parts []string) bool {
	reach := make([]bool, len(parts)+1)
	reach[0] = true
	for _, p := range pattern {
		next := make([]bool, len(parts)+1)
		for i := range reach {
			switch {
			case !reach[i]:
			case p == "**":
				for j := i; j <= len(parts); j++ {
					next[j] = true
				}
			case i < len(parts) && matchPart(p, parts[i]):
				next[i+1] = true
			}
		}
		reach = next
	}
	return reach[len(parts)]
}

func matchPart(pattern, part string) bool {
	ok, err := path.Match(pattern, part)
	if err != nil {
		return pattern == part
	}
	return ok
}
