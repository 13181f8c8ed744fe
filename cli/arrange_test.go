package cli

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	ucli "github.com/urfave/cli/v2"
)

func TestFlagsMayStandAnywhere(t *testing.T) {
	for in, want := range map[string]string{
		"delete server db -y":                    "delete -y -- server db",
		"delete -y server db":                    "delete -y -- server db",
		"-y delete server db":                    "delete -y -- server db",
		"get":                                    "get",
		"get servers -o json":                    "get -o json -- servers",
		"get -o json servers":                    "get -o json -- servers",
		"-o json get servers":                    "get -o json -- servers",
		"get servers --output=json -w":           "get --output=json -w -- servers",
		"get servers --config c.json":            "--config c.json get -- servers",
		"--config c.json get servers":            "--config c.json get -- servers",
		"get --config=c.json":                    "--config=c.json get",
		"validate a.yaml --set spec.cpu=-1 -f -": "validate --set spec.cpu=-1 -f - -- a.yaml",
		"validate --set -f a":                    "validate --set -f -- a", // a flag that takes a value takes it
		"image list -o json":                     "image list -o json",
		"image -o json list":                     "image list -o json",
		"get --nonsense x":                       "get --nonsense -- x",
		"get -h":                                 "get -h",
		"--version":                              "--version",
		"bogus --flag":                           "--flag bogus",
		"ssh db -- ls -o name":                   "ssh -- db -- ls -o name",
		"ssh db":                                 "ssh -- db",
		"get -- -o json":                         "get -- -o json",
		"delete -- server db -y":                 "delete -- server db -y",
		"get server get":                         "get -- server get",
		"get server -o":                          "get -o -- server",
		"ssh help":                               "ssh -- help",
		"get --generate-bash-completion":         "get --generate-bash-completion",
		"get servers --generate-bash-completion": "get servers --generate-bash-completion",
		"logs db --run r -f --config x":          "--config x logs --run r -f -- db",
		"dial --socket /s db":                    "dial --socket /s -- db",
	} {
		got := arrange(newApp(), append([]string{"burrow"}, strings.Fields(in)...))
		require.Equal(t, "burrow "+want, strings.Join(got, " "), in)
	}
	require.Equal(t, []string{"burrow"}, arrange(newApp(), []string{"burrow"}))
	require.Empty(t, arrange(newApp(), nil))
}

// A flag before its command is given a value or not by what any command says of it.
func TestCommandsAgreeWhichFlagsTakeValues(t *testing.T) {
	takes := map[string]bool{}
	var check func(path string, commands []*ucli.Command)
	check = func(path string, commands []*ucli.Command) {
		for _, c := range commands {
			for _, f := range c.Flags {
				for _, name := range f.Names() {
					if len(name) == 1 {
						continue // -f is a file for apply, and follow for logs: short flags stand behind their command
					}
					known, seen := takes[name]
					require.False(t, seen && known != takesValue(f), "--%s of %s%s", name, path, c.Name)
					takes[name] = takesValue(f)
				}
			}
			check(path+c.Name+" ", c.Subcommands)
		}
	}
	check("", newApp().Commands)
}

func TestEveryCommandIsDescribed(t *testing.T) {
	var check func(commands []*ucli.Command)
	check = func(commands []*ucli.Command) {
		for _, c := range commands {
			require.NotEmpty(t, c.Usage, c.Name)
			require.True(t, c.Action != nil, c.Name)
			for _, f := range c.Flags {
				if v, ok := f.(ucli.DocGenerationFlag); ok && !strings.HasPrefix(c.Name, "_") {
					visible, _ := f.(ucli.VisibleFlag)
					require.True(t, v.GetUsage() != "" || visible != nil && !visible.IsVisible(), "--%s of %s", f.Names()[0], c.Name)
				}
			}
			check(c.Subcommands)
		}
	}
	check(newApp().Commands)
}

func FuzzArrangeLosesNothing(f *testing.F) {
	for _, s := range []string{"get servers -o json", "-- x", "ssh db -- a -- b", "image -o", "- --", "--set", "get\x00-x"} {
		f.Add(s)
	}
	app := newApp()
	f.Fuzz(func(t *testing.T, line string) {
		in := append([]string{"burrow"}, strings.Split(line, " ")...)
		count := func(words []string) map[string]int {
			n := map[string]int{}
			for _, w := range words {
				if w != "--" {
					n[w]++
				}
			}
			return n
		}
		require.Equal(t, count(in), count(arrange(app, in)))
	})
}
