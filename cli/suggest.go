package cli

import (
	"strings"

	ucli "github.com/urfave/cli/v2"

	"burrow.dev/burrow/manifest"
)

// typedWords is where the app keeps the command line as it was typed.
const typedWords = "typed"

// didYouMean appends the known word that a word is likely a slip for; "" when none is near.
func didYouMean(word string, known []string) string {
	if near := manifest.Nearest(word, known); near != "" {
		return "; did you mean " + near + "?"
	}
	return ""
}

// commandNames are the names of the commands that the help lists, and their aliases.
func commandNames(commands []*ucli.Command) []string {
	var names []string
	for _, c := range commands {
		if !c.Hidden {
			names = append(names, c.Names()...)
		}
	}
	return names
}

// flagWords are a command's visible long flags as they are typed.
func flagWords(flags []ucli.Flag) []string {
	var words []string
	for _, f := range flags {
		if visible, ok := f.(ucli.VisibleFlag); ok && !visible.IsVisible() {
			continue
		}
		for _, name := range f.Names() {
			if len(name) > 1 {
				words = append(words, "--"+name)
			}
		}
	}
	return words
}

// typedFlag gives a flag with the dashes it was typed with; the parser drops them.
func typedFlag(c *ucli.Context, name string) string {
	typed, _ := c.App.Metadata[typedWords].([]string)
	for _, word := range typed {
		flag, _, _ := strings.Cut(word, "=")
		if strings.HasPrefix(flag, "-") && strings.TrimLeft(flag, "-") == name {
			return flag
		}
	}
	return "--" + name
}
