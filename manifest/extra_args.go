package manifest

import (
	"fmt"
	"slices"
	"strings"
)

// argument is an option of ansible-playbook.
type argument struct {
	names string // by blank, as written with their dashes
	value bool   // it takes one
	// refused says why it cannot be in extra-args, and instead what can be done; empty: it can.
	refused, instead string
}

// Reasons why an option is refused.
const (
	hasField    = "has a field of its own"
	isReached   = "how a server is reached is burrow's part"
	nobodyThere = "would ask, and nobody is there to answer"
	runsNothing = "would run nothing, so the server would be ready without its playbook"
)

// playbookArguments are the options of ansible-playbook 2.14 to 2.19. What is not in the table
// is refused too: of an option that nobody here has looked at nobody knows what it undoes.
var playbookArguments = []argument{
	{names: "-v --verbose"},
	{names: "-D --diff"},
	{names: "-f --forks", value: true},
	{names: "-b --become"},
	{names: "--become-user", value: true},
	{names: "--become-method", value: true},
	{names: "--force-handlers"},
	{names: "--flush-cache"},
	{names: "--start-at-task", value: true},
	{names: "-M --module-path", value: true},
	{names: "-T --timeout", value: true},

	{"-i --inventory --inventory-file", true, hasField, "write it in inventory"},
	{"-t --tags", true, hasField, "write it in tags"},
	{"--skip-tags", true, hasField, "write it in skipTags"},
	// On the command line every user of the host would see the values.
	{"-e --extra-vars", true, hasField, "write it in extraVars, or load a file with vars_files in the playbook"},
	{"-l --limit", true, "the run is for the servers that it is declared for", "remove it"},
	{"--vault-password-file --vault-pass-file", true, hasField, "write it in vaultPassword"},
	{"--vault-id", true, hasField, "write it in vaultPassword"},
	{"--become-password-file --become-pass-file", true, hasField, "write it in becomePassword"},

	{"--private-key --key-file", true, isReached, "remove it"},
	{"-u --user", true, isReached, "remove it, or write remote_user for other hosts in the playbook"},
	{"-c --connection", true, isReached, "remove it"},
	{"--ssh-common-args", true, isReached, "remove it"},
	{"--ssh-extra-args", true, isReached, "remove it"},
	{"--sftp-extra-args", true, isReached, "remove it"},
	{"--scp-extra-args", true, isReached, "remove it"},
	{"--connection-password-file --conn-pass-file", true, isReached, "remove it"},

	{"-k --ask-pass", false, nobodyThere, "remove it"},
	{"-K --ask-become-pass", false, nobodyThere, "write it in becomePassword"},
	{"-J --ask-vault-password --ask-vault-pass", false, nobodyThere, "write it in vaultPassword"},
	{"--step", false, nobodyThere, "remove it"},

	{"-C --check", false, runsNothing, "remove it; `burrow configure --check` says what would change"},
	{"--syntax-check", false, runsNothing, "remove it; burrow checks the syntax before anything is built"},
	{"--list-hosts", false, runsNothing, "remove it"},
	{"--list-tasks", false, runsNothing, "remove it"},
	{"--list-tags", false, runsNothing, "remove it"},
	{"-h --help", false, runsNothing, "remove it"},
	{"--version", false, runsNothing, "remove it"},
}

// extraArgs refuses by name what would undo what burrow decides about a run.
func (d *decoder) extraArgs(path string, args []string) {
	for i := 0; i < len(args); i++ {
		skip, message, instead := judgeArgument(args[i], i+1 < len(args))
		if message != "" {
			d.complain(d.doc.element(path, i), message, instead)
		}
		if skip {
			i++
		}
	}
}

// judgeArgument reads one argument as Ansible does; next reports whether another follows.
// takesNext: that is its value.
func judgeArgument(text string, next bool) (takesNext bool, message, instead string) {
	name, _, valued := strings.Cut(text, "=")
	switch {
	case !strings.HasPrefix(text, "-") || text == "-":
		return false, quote(text) + " would be one more playbook", "write it in playbook, or, when it is an option's value, --option=value"
	case text == "--":
		return false, "-- would make what follows playbooks", "remove it"
	case !strings.HasPrefix(text, "--"):
		return judgeShort(text[1:], next)
	case strings.ContainsAny(name, " \t\n"):
		return false, quote(text) + " is more than one argument", "write --option=value, or two entries"
	}
	a, ok := findArgument(name)
	switch {
	case !ok:
		return false, quote(name) + " is no option of ansible-playbook that burrow knows", nearOption(name)
	case a.refused != "":
		return a.value && !valued && next, name + " " + a.refused, a.instead
	case a.value && !valued && !next:
		return false, name + " needs a value", "write " + name + "=VALUE"
	case !a.value && valued:
		return false, name + " takes no value", "write " + name
	}
	return a.value && !valued, "", ""
}

// judgeShort reads letters that stand together behind one dash: "vvv", "f5", "vi" (and a value).
func judgeShort(letters string, next bool) (takesNext bool, message, instead string) {
	for i, letter := range letters {
		name := "-" + string(letter)
		a, ok := findArgument(name)
		rest := letters[i+len(string(letter)):]
		switch {
		case !ok:
			return false, quote(name) + " is no option of ansible-playbook that burrow knows", "remove it"
		case a.refused != "":
			return a.value && rest == "" && next, name + " " + a.refused, a.instead
		case a.value && rest == "" && !next:
			return false, name + " needs a value", fmt.Sprintf("write two entries: %s and the value", name)
		case a.value:
			return rest == "", "", ""
		}
	}
	return false, "", ""
}

func findArgument(name string) (argument, bool) {
	i := slices.IndexFunc(playbookArguments, func(a argument) bool { return slices.Contains(strings.Fields(a.names), name) })
	if i < 0 {
		return argument{}, false
	}
	return playbookArguments[i], true
}

// nearOption says what an unknown option may be. Ansible would take a beginning for the whole.
func nearOption(name string) string {
	var all []string
	for _, a := range playbookArguments {
		all = append(all, strings.Fields(a.names)...)
	}
	for _, full := range all {
		if strings.HasPrefix(full, name) {
			return "write options in full: " + full
		}
	}
	if near := Nearest(name, all); near != "" {
		return "did you mean " + near + "?"
	}
	return "remove it"
}
