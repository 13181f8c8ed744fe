package catalogue

import (
	_ "embed"
	"fmt"
	"slices"

	"github.com/goccy/go-yaml"
)

//go:embed catalogue.yaml
var file []byte

// Entry is one image known by name.
type Entry struct {
	Name        string   `yaml:"name"`
	Aliases     []string `yaml:"aliases,omitempty"`
	URL         string   `yaml:"url"`
	ChecksumURL string   `yaml:"checksumUrl"`
	User        string   `yaml:"user"` // default login
	OSName      string   `yaml:"osName"`
	OSVersion   string   `yaml:"osVersion"`
	// Tried: the project's tests have built a server from it.
	Tried bool `yaml:"tried"`
}

// Entries lists the catalogue in its own order. The file is part of the program and
// tested: one that does not parse is a defect of the program, and panics.
func Entries() []Entry {
	var all []Entry
	if err := yaml.UnmarshalWithOptions(file, &all, yaml.Strict()); err != nil {
		panic(fmt.Sprintf("catalogue.yaml: %v", err))
	}
	return all
}

// Find gives the entry of a name or alias.
func Find(name string) (Entry, bool) {
	for _, e := range Entries() {
		if e.Name == name || slices.Contains(e.Aliases, name) {
			return e, true
		}
	}
	return Entry{}, false
}

// Names lists every name and alias, for validation and completion.
func Names() []string {
	var names []string
	for _, e := range Entries() {
		names = append(append(names, e.Name), e.Aliases...)
	}
	return names
}
