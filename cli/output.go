package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	ucli "github.com/urfave/cli/v2"

	"burrow.dev/burrow/internal/plaintext"
	"burrow.dev/burrow/manifest"
)

// outputFlag is -o with the formats that a command knows; the first is the default.
func outputFlag(formats ...string) ucli.Flag {
	return &ucli.StringFlag{
		Name: "output", Aliases: []string{"o"}, Value: formats[0], Usage: "`FORMAT`: " + strings.Join(formats, ", "),
		Action: func(c *ucli.Context, format string) error {
			if !slices.Contains(formats, format) {
				return usageErrorf(c, "there is no output format %q, only %s", format, strings.Join(formats, ", "))
			}
			return nil
		},
	}
}

func output(c *ucli.Context) string { return c.String("output") }

// list is several records as one document.
type list struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Items      []manifest.Record `json:"items"`
}

func listOf(records []manifest.Record) list {
	if records == nil {
		records = []manifest.Record{}
	}
	return list{APIVersion: manifest.APIVersion, Kind: "List", Items: records}
}

func printJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(plaintext.JSONWriter(w))
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// jsonList writes what printJSON writes of a list, item by item, so that a list of any
// length takes the memory of one. What fails in the middle leaves half a document, and a
// command that says so.
type jsonList struct {
	w     io.Writer
	items int
}

func (l *jsonList) add(rec manifest.Record) error {
	var b bytes.Buffer
	if l.items++; l.items == 1 {
		fmt.Fprintf(&b, "{\n  \"apiVersion\": %q,\n  \"kind\": \"List\",\n  \"items\": [\n    ", manifest.APIVersion)
	} else {
		b.WriteString(",\n    ")
	}
	enc := json.NewEncoder(plaintext.JSONWriter(&b))
	enc.SetIndent("    ", "  ")
	enc.SetEscapeHTML(false)
	if err := enc.Encode(rec); err != nil {
		return err
	}
	b.Truncate(b.Len() - 1) // Encode ends the line
	_, err := l.w.Write(b.Bytes())
	return err
}

// end closes the document.
func (l *jsonList) end() error {
	if l.items == 0 {
		return printJSON(l.w, listOf(nil))
	}
	_, err := io.WriteString(l.w, "\n  ]\n}\n")
	return err
}

// printYAML prints the same document as printJSON, in the same order of keys.
func printYAML(w io.Writer, v any) error {
	encoded, err := json.Marshal(v)
	if err != nil {
		return err
	}
	document, err := yamlOf(encoded)
	if err != nil {
		return err
	}
	_, err = w.Write(document)
	return err
}

// yamlOf gives a JSON document as YAML. One with text that a terminal would obey stays JSON,
// which is YAML too: only there the text can be written as escapes, and is not lost.
func yamlOf(encoded []byte) ([]byte, error) {
	document, err := yaml.JSONToYAML(encoded)
	if err != nil {
		return nil, fmt.Errorf("write YAML: %w", err)
	}
	if plaintext.Lines(string(document)) == string(document) {
		return document, nil
	}
	var indented bytes.Buffer
	err = json.Indent(&indented, plaintext.EscapeJSON(encoded), "", "  ")
	return append(indented.Bytes(), '\n'), err
}
