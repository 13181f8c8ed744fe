package galaxy

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/token"
)

// MaxBytes bounds a requirements file; each entry costs a download.
const MaxBytes = 64 << 10

// Kind of an Entry.
type Kind string

// Kinds.
const (
	Role       Kind = "role"
	Collection Kind = "collection"
)

// Entry is one requirement.
type Entry struct {
	Kind Kind
	// Name is what plays call it; empty where only what is fetched says so.
	Name string
	// Shown is how the file calls it.
	Shown string
	// Pinned: the same version is fetched each time, as far as the file can say that.
	Pinned bool
	// sources are the texts that say where it is from.
	sources []string
	// here: it is a file or folder on the machine that installs, by its type.
	here bool
}

// File is a requirements file.
type File []Entry

// Has reports whether there is an entry of a kind.
func (f File) Has(kind Kind) bool {
	return slices.ContainsFunc(f, func(e Entry) bool { return e.Kind == kind })
}

// Unpinned are the entries without a version, or with a range of versions.
func (f File) Unpinned() []string {
	var names []string
	for _, e := range f {
		if !e.Pinned {
			names = append(names, string(e.Kind)+" "+e.Shown)
		}
	}
	return names
}

// In reports whether all entries are there already, as has knows.
func (f File) In(has func(Kind, string) bool) bool {
	return !slices.ContainsFunc(f, func(e Entry) bool { return e.Name == "" || !has(e.Kind, e.Name) })
}

// Local reports whether what an entry installs depends on more than the file says: whether it
// is, or could be, a file of the folder that ansible-galaxy is run in.
func (f File) Local(folder *os.Root) bool {
	return slices.ContainsFunc(f, func(e Entry) bool {
		return e.here || slices.ContainsFunc(e.sources, func(s string) bool { return !elsewhere(s) || exists(folder, s) })
	})
}

var (
	// remote is a URL, or git's other way to write an ssh one.
	remote = regexp.MustCompile(`^(git\+|hg\+)?((https?|ssh|git|file)://|[\w.-]+@[\w.-]+:)`)
	// word is a name on a galaxy server (role, collection), or that of a server.
	word = regexp.MustCompile(`^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$`)
	// login is one in a URL, other than the name that ssh needs.
	login = regexp.MustCompile(`https?://[^/\s]*@|://[^/\s:]*:[^/\s]*@`)
)

func elsewhere(source string) bool { return remote.MatchString(source) || word.MatchString(source) }

func exists(folder *os.Root, source string) bool {
	if !filepath.IsLocal(source) {
		return false
	}
	_, err := folder.Lstat(source)
	return err == nil
}

// Parse reads a requirements file, in either of its forms: a list of roles, or a mapping with
// roles and collections. A login in a URL is refused, and no error quotes one.
func Parse(data []byte) (File, error) {
	if len(data) > MaxBytes {
		return nil, fmt.Errorf("it is larger than %d KiB", MaxBytes>>10)
	}
	if login.Match(data) {
		return nil, fmt.Errorf("it %w", errLogin)
	}
	for _, t := range lexer.Tokenize(string(data)) {
		if t.Type == token.AliasType || t.Type == token.AnchorType {
			return nil, errors.New("anchors and aliases are not supported in it")
		}
	}
	var content any
	if err := yaml.Unmarshal(data, &content); err != nil {
		return nil, errors.New("it is not YAML: " + yaml.FormatError(err, false, false))
	}
	roles, collections := content, any(nil)
	if mapping, ok := content.(map[string]any); ok {
		for key := range mapping {
			if key != "roles" && key != "collections" {
				return nil, fmt.Errorf("it has %q where only roles and collections may stand", key)
			}
		}
		roles, collections = mapping["roles"], mapping["collections"]
	}
	return parseLists(roles, collections)
}

var errLogin = errors.New("has a login in a URL, which would stand in the bundle and in logs")

func parseLists(roles, collections any) (File, error) {
	var file File
	for _, list := range []struct {
		kind    Kind
		content any
		parse   func(map[string]string) Entry
	}{{Role, roles, parseRole}, {Collection, collections, parseCollection}} {
		if list.content == nil {
			continue
		}
		items, ok := list.content.([]any)
		if !ok {
			return nil, fmt.Errorf("its %ss are not a list", list.kind)
		}
		for i, item := range items {
			fields, err := fieldsOf(item)
			for _, text := range fields {
				if login.MatchString(text) { // written with escapes
					err = errLogin
				}
			}
			if err != nil {
				return nil, fmt.Errorf("%s %d of it %w", list.kind, i+1, err)
			}
			e := list.parse(fields)
			if e.Kind = list.kind; e.Shown == "" {
				return nil, fmt.Errorf("%s %d of it has no name", list.kind, i+1)
			}
			file = append(file, e)
		}
	}
	return file, nil
}

// fieldsOf gives an entry's fields as texts; a text of its own is the field "".
func fieldsOf(item any) (map[string]string, error) {
	switch v := item.(type) {
	case string:
		return map[string]string{"": v}, nil
	case map[string]any:
		fields := map[string]string{}
		for key, value := range v {
			switch value.(type) {
			case nil, []any, map[string]any: // signatures, further variables
			default:
				fields[key] = fmt.Sprint(value)
			}
		}
		return fields, nil
	}
	return nil, errors.New("is neither a name nor a mapping")
}

// parseRole reads as RoleRequirement of ansible-core does.
func parseRole(fields map[string]string) Entry {
	src, name, version := fields["src"], fields["name"], fields["version"]
	if file := fields["include"]; file != "" {
		return Entry{Shown: file, Pinned: true, here: true}
	}
	if text := fields[""]; text != "" { // SRC,VERSION,NAME
		parts := strings.SplitN(text, ",", 3)
		parts = append(parts, "", "")
		src, version, name = parts[0], parts[1], parts[2]
	}
	if old := fields["role"]; old != "" {
		src, name = old, old
	}
	if src == "" {
		src = name
	}
	if name == "" {
		name = roleName(src)
	}
	return Entry{Name: name, Shown: name, Pinned: version != "" || isArchive(src), sources: []string{src}}
}

// roleName is what a role from a URL is called.
func roleName(src string) string {
	if !strings.Contains(src, "://") && !strings.Contains(src, "@") {
		return src
	}
	name := path.Base(src)
	for _, suffix := range []string{".git", ".tar.gz"} {
		name = strings.TrimSuffix(name, suffix)
	}
	name, _, _ = strings.Cut(name, ",")
	return name
}

func isArchive(src string) bool {
	return strings.HasSuffix(src, ".tar.gz") && !strings.HasPrefix(src, "git+")
}

var (
	collectionName = regexp.MustCompile(`^[A-Za-z0-9_]+\.[A-Za-z0-9_]+$`)
	exactVersion   = regexp.MustCompile(`^=?=?\s*[0-9][0-9A-Za-z.+-]*$`)
)

// parseCollection reads as Requirement of ansible-core does.
func parseCollection(fields map[string]string) Entry {
	shown, version := fields["name"], fields["version"]
	if text := fields[""]; text != "" {
		shown = text
	}
	e := Entry{Shown: shown, sources: []string{shown}}
	if source := fields["source"]; source != "" {
		if e.sources = append(e.sources, source); shown == "" {
			e.Shown = source
		}
	}
	kind := fields["type"]
	if collectionName.MatchString(shown) {
		e.Name = shown
	}
	switch {
	case kind == "file" || kind == "dir" || kind == "subdirs":
		e.here, e.Pinned = true, true
	case kind == "git" || e.Name == "" && strings.Contains(shown, "git") && !isArchive(shown):
		_, ref, _ := strings.Cut(shown, ",")
		e.Pinned = version != "" && version != "*" && version != "HEAD" || ref != ""
	case e.Name == "": // an archive
		e.Pinned = true
	default:
		e.Pinned = exactVersion.MatchString(version)
	}
	return e
}
