package ansiblex

import (
	"regexp"
	"strings"
)

// shlexPlain is what Python's shlex takes for one word as it stands.
var shlexPlain = regexp.MustCompile(`^[A-Za-z0-9@%+=:,./_-]+$`)

// shlexWord quotes text for shlex.split, which Ansible takes ssh's arguments apart with.
func shlexWord(text string) string {
	if shlexPlain.MatchString(text) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'"'"'`) + "'"
}
