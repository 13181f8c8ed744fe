package cli

import (
	"slices"
	"strings"

	ucli "github.com/urfave/cli/v2"
)

// completionFlag is urfave's, and must stay the last argument.
const completionFlag = "--generate-bash-completion"

// arrange puts arguments into the order that urfave/cli wants (it stops looking for flags
// at the first argument that is none): each flag goes behind the command that knows it,
// and a "--" between flags and arguments. What follows a "--" of the user's is never a
// flag; the "--" itself is kept for commands whose ArgsUsage has one.
func arrange(app *ucli.App, args []string) []string {
	if len(args) == 0 || args[len(args)-1] == completionFlag {
		return args
	}
	a := arrangement{app: app, levels: []level{{flags: withBuiltin(app.Flags, ucli.VersionFlag), commands: app.Commands}}}
	for i := 1; i < len(args); i++ {
		arg := args[i]
		switch {
		case arg == "--":
			return a.result(args[0], args[i+1:], true)
		case len(arg) > 1 && arg[0] == '-':
			i += a.flag(arg, args[i+1:])
		default:
			a.word(arg)
		}
	}
	return a.result(args[0], nil, false)
}

// arrangement is what has been sorted so far.
type arrangement struct {
	app       *ucli.App
	levels    []level // the app, the command, its subcommand
	early     []early // flags that came before the command that may know them
	arguments []string
}

// level is one command of the chain with the flags given to it.
type level struct {
	name     string
	flags    []ucli.Flag
	commands []*ucli.Command
	usage    string
	given    []string
}

type early struct {
	name  string
	words []string
}

func (a *arrangement) last() *level { return &a.levels[len(a.levels)-1] }

// word takes what is no flag: the next command of the chain, or an argument.
func (a *arrangement) word(arg string) {
	if len(a.arguments) == 0 {
		for _, c := range a.last().commands {
			if c.HasName(arg) {
				a.levels = append(a.levels, level{name: arg, flags: withBuiltin(c.Flags), commands: c.Subcommands, usage: c.ArgsUsage})
				return
			}
		}
	}
	a.arguments = append(a.arguments, arg)
}

// flag takes a flag, and says how many words after it it took as its value.
func (a *arrangement) flag(arg string, after []string) (taken int) {
	name, _, hasValue := strings.Cut(strings.TrimLeft(arg, "-"), "=")
	words := []string{arg}
	home, flag := a.find(name)
	if flag == nil {
		flag = anyFlag(a.last().commands, name)
	}
	if flag != nil && !hasValue && takesValue(flag) && len(after) > 0 {
		words, taken = append(words, after[0]), 1
	}
	if home < 0 {
		a.early = append(a.early, early{name, words})
	} else {
		a.levels[home].given = append(a.levels[home].given, words...)
	}
	return taken
}

// find looks for a flag in the chain, the innermost command first; home is -1 when none
// knows it.
func (a *arrangement) find(name string) (home int, flag ucli.Flag) {
	for home := len(a.levels) - 1; home >= 0; home-- {
		if f := named(a.levels[home].flags, name); f != nil {
			return home, f
		}
	}
	return -1, nil
}

func (a *arrangement) result(program string, after []string, dashes bool) []string {
	for _, e := range a.early {
		home, _ := a.find(e.name)
		if home < 0 {
			home = len(a.levels) - 1 // nobody knows it: the command says so
		}
		a.levels[home].given = append(a.levels[home].given, e.words...)
	}
	out := []string{program}
	for _, l := range a.levels {
		if l.name != "" {
			out = append(out, l.name)
		}
		out = append(out, l.given...)
	}
	arguments := a.arguments
	if dashes && strings.Contains(a.last().usage, "[-- ") {
		arguments = append(arguments, "--")
	}
	arguments = append(arguments, after...)
	if len(arguments) == 0 {
		return out
	}
	if len(a.levels) > 1 {
		out = append(out, "--")
	}
	return append(out, arguments...)
}

func withBuiltin(flags []ucli.Flag, more ...ucli.Flag) []ucli.Flag {
	return slices.Concat(flags, []ucli.Flag{ucli.HelpFlag}, more)
}

func named(flags []ucli.Flag, name string) ucli.Flag {
	for _, f := range flags {
		if slices.Contains(f.Names(), name) {
			return f
		}
	}
	return nil
}

// anyFlag finds a flag of a command that has not been named yet, to know whether it takes
// a value; commands agree on that, which a test checks.
func anyFlag(commands []*ucli.Command, name string) ucli.Flag {
	for _, c := range commands {
		if f := named(c.Flags, name); f != nil {
			return f
		}
		if f := anyFlag(c.Subcommands, name); f != nil {
			return f
		}
	}
	return nil
}

func takesValue(f ucli.Flag) bool {
	d, ok := f.(ucli.DocGenerationFlag)
	return ok && d.TakesValue()
}
