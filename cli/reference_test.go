package cli

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	ucli "github.com/urfave/cli/v2"
)

var updateReference = flag.Bool("update", false, "write the commands' reference into docs/cli.md")

const (
	referenceFile = "../docs/cli.md"
	// generatedFrom is the line of the reference below which everything comes from the
	// commands themselves.
	generatedFrom = "<!-- below: go test ./cli -run Reference -update -->\n"
)

func TestTheReferenceSaysWhatTheHelpSays(t *testing.T) {
	written, err := os.ReadFile(referenceFile)
	require.NoError(t, err)
	head, _, found := strings.Cut(string(written), generatedFrom)
	require.True(t, found, "%s has no line %q", referenceFile, generatedFrom)
	text := head + generatedFrom + reference(newApp())
	if *updateReference {
		require.NoError(t, os.WriteFile(referenceFile, []byte(text), 0o644))
		return
	}
	require.Equal(t, text, string(written), "it is out of date: go test ./cli -run Reference -update")
}

func TestTheReferenceNamesEveryExitCode(t *testing.T) {
	written, err := os.ReadFile(referenceFile)
	require.NoError(t, err)
	for _, code := range []int{ExitOK, ExitOther, ExitInvalid, ExitDiffers, ExitBusy, ExitFailed, ExitHeld, ExitStopped} {
		require.Contains(t, string(written), fmt.Sprintf("| %d | ", code))
	}
}

// reference writes every command that the help lists, in the help's order.
func reference(app *ucli.App) string {
	var b strings.Builder
	for _, category := range []string{categoryOperations, categoryResources, categoryServers, categoryMachine} {
		fmt.Fprintf(&b, "\n## %s\n", category)
		for _, c := range app.Commands {
			if c.Category == category && !c.Hidden {
				referenceOf(&b, "burrow", c)
			}
		}
	}
	return b.String()
}

func referenceOf(b *strings.Builder, above string, c *ucli.Command) {
	name := above + " " + c.Name
	fmt.Fprintf(b, "\n### %s\n\n%s.\n", name, strings.ToUpper(c.Usage[:1])+c.Usage[1:])
	if len(c.Subcommands) == 0 {
		usage := name
		if len(c.Flags) > 0 {
			usage += " [flags]"
		}
		fmt.Fprintf(b, "\n    %s\n", strings.TrimSpace(usage+" "+c.ArgsUsage))
	}
	if c.Description != "" {
		fmt.Fprintf(b, "\n%s\n", paragraphs(c.Description))
	}
	referenceOfFlags(b, c.Flags)
	for _, sub := range c.Subcommands {
		if !sub.Hidden && sub.Name != "help" {
			referenceOf(b, name, sub)
		}
	}
}

// paragraphs makes the indented lines of a description, which are examples, code.
func paragraphs(description string) string {
	var b strings.Builder
	code := false
	for line := range strings.Lines(description) {
		example := strings.HasPrefix(line, "  ")
		if example != code && b.Len() > 0 {
			b.WriteString("\n")
		}
		if code = example; code {
			line = "    " + strings.TrimLeft(line, " ")
		}
		b.WriteString(line)
	}
	return strings.TrimRight(b.String(), "\n")
}

func referenceOfFlags(b *strings.Builder, flags []ucli.Flag) {
	var rows strings.Builder
	for _, f := range flags {
		visible, ok := f.(ucli.VisibleFlag)
		doc, documented := f.(ucli.DocGenerationFlag)
		if !documented || ok && !visible.IsVisible() {
			continue
		}
		fmt.Fprintf(&rows, "| %s | %s | %s |\n", flagNames(f, doc), flagDefault(doc), flagUsage(doc))
	}
	if rows.Len() > 0 {
		fmt.Fprintf(b, "\n| flag | default | |\n|---|---|---|\n%s", rows.String())
	}
}

// flagNames gives "`-f`, `--file PATH`".
func flagNames(f ucli.Flag, doc ucli.DocGenerationFlag) string {
	placeholder := ""
	if doc.TakesValue() {
		if _, rest, ok := strings.Cut(doc.GetUsage(), "`"); ok {
			placeholder, _, _ = strings.Cut(rest, "`")
		}
	}
	var names []string
	for _, name := range f.Names() {
		if len(name) == 1 {
			names = append([]string{"`-" + name + "`"}, names...)
			continue
		}
		names = append(names, "`"+strings.TrimSpace("--"+name+" "+placeholder)+"`")
	}
	return strings.Join(names, ", ")
}

// flagDefault leaves out what stands for "not given".
func flagDefault(doc ucli.DocGenerationFlag) string {
	text := strings.Trim(doc.GetDefaultText(), `"`)
	if !doc.TakesValue() || text == "0" || text == "" {
		return ""
	}
	if strings.Contains(text, " ") {
		return text // words, not a value
	}
	return "`" + text + "`"
}

func flagUsage(doc ucli.DocGenerationFlag) string {
	text := strings.ReplaceAll(doc.GetUsage(), "|", `\|`)
	if doc.TakesValue() {
		text = strings.ReplaceAll(text, "`", "")
	}
	for _, env := range doc.GetEnvVars() {
		text += " (environment: `" + env + "`)"
	}
	return text
}
